//! `lapwing sensitivity`: how much each number of the processors matters.

use lapwing_lab::simulate::{Sensitivity, Slope};

use crate::cli::ScenarioArgs;
use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::table::{Align, table};

const EXAMPLES: &str = "\
Examples:
  lapwing sensitivity --strategy tensor-level -p 256
  lapwing sensitivity --strategy gpu-only --step 0.05

With --json:
  {\"prefill_tokens_per_second\":F,\"decode_tokens_per_second\":F|null,\"step\":F,
   \"parameters\":[{\"key\":\"…\",\"value\":F,\"unit\":\"…\",\"status\":\"pinned|derived|assumed\",
    \"prefill_slope\":F,\"prefill_elasticity\":F|null,
     \"decode_slope\":F|null,\"decode_elasticity\":F|null}],
   \"skipped\":[{\"key\":\"…\",\"value\":\"…\",\"reason\":\"…\"}],
   \"measurements\":[{\"key\":\"…\",\"spread\":F,\"prefill_share\":F,\"decode_share\":F|null}]}
  slope: tokens per second per unit of the number; elasticity: relative change of the speed divided
  by that of the number.";

/// Options of `sensitivity`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,

    /// Relative step with which slopes are measured, up and down where possible; for numbers that are
    /// 0, the absolute step
    #[arg(long, value_name = "SHARE", default_value = "0.01", value_parser = step)]
    step: f64,

    /// Also print numbers without effect
    #[arg(long)]
    all: bool,
}

fn step(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(step) if step > 0.0 && step <= 0.5 => Ok(step),
        _ => Err("it must be a number above 0 and at most 0.5".to_owned()),
    }
}

/// Simulates and prints.
pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let scenario = args.scenario.scenario(session)?;
    let found = Sensitivity::new(&scenario, args.step)?;
    if session.json {
        return print_json(&found);
    }
    let matters = |slope: &&Slope| {
        args.all || slope.prefill_slope != 0.0 || slope.decode_slope.is_some_and(|s| s != 0.0)
    };
    let shown = found.parameters.iter().filter(matters);
    let rows: Vec<_> = shown.map(row).collect();
    let without = found.parameters.len() - rows.len();
    let header = [
        ("number", Align::Left),
        ("value", Align::Right),
        ("", Align::Left),
        ("prefill, per 1 %", Align::Right),
        ("per unit", Align::Right),
        ("decode, per 1 %", Align::Right),
        ("per unit", Align::Right),
        ("", Align::Left),
    ];
    let mut text = format!("{scenario}\n{}", table(header, rows));
    if without > 0 {
        text.push_str(&format!("{without} more numbers have no effect; --all prints them\n"));
    }
    for skipped in &found.skipped {
        let (key, value, reason) = (&skipped.key, &skipped.value, &skipped.reason);
        text.push_str(&format!("no slope for {key} ({value}): {reason}\n"));
    }
    for one in found.measurements.iter().take(SHOWN) {
        let share = |share: f64| format!("{:.0} %", share * 100.0);
        let decode = one.decode_share.map(|of| format!(", and {} of that of decode", share(of)));
        text.push_str(&format!(
            "a measurement of {} (known to ±{}) would remove {} of the variance of prefill{}\n",
            one.key,
            share(one.spread),
            share(one.prefill_share),
            decode.unwrap_or_default()
        ));
    }
    print(&text)
}

/// Measurements that are printed.
const SHOWN: usize = 3;

fn row(slope: &Slope) -> [String; 8] {
    let dash = || "–".to_owned();
    [
        slope.key.clone(),
        format!("{:.4}", slope.value),
        slope.unit.clone(),
        slope.prefill_elasticity.map_or_else(dash, |e| format!("{e:+.3} %")),
        format!("{:+.4} tok/s", slope.prefill_slope),
        slope.decode_elasticity.map_or_else(dash, |e| format!("{e:+.3} %")),
        slope.decode_slope.map_or_else(dash, |s| format!("{s:+.4} tok/s")),
        slope.status.clone(),
    ]
}
