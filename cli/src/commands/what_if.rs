//! `lapwing what-if`: what a change of the processors would change, and where.

use lapwing_lab::simulate::{Change, WhatIf};

use crate::cli::ScenarioArgs;
use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::simulated;
use crate::cli::table::{Align, table};
use crate::cli::visible::one_line;

const EXAMPLES: &str = "\
Examples:
  lapwing what-if --strategy tensor-level npu.rate=2x
  lapwing what-if -p 64 sync.fast=0,memory.copy=2x
  lapwing what-if -p 525 --strategy npu-padding strategy=tensor-level

CHANGES: settings (see `lapwing sweep --help`) or numbers of the processors, separated by commas; a
number may also be a multiple (2x) or a change in percent (+10%).

With --json:
  {\"before\":{as in simulate},\"after\":{…},\"change\":F,
   \"moved\":[{\"lane\":\"…\",\"cause\":\"…\",\"op\":\"…\",\"a_ns\":N,\"b_ns\":N,\"delta_ns\":N}]}
  moved: parts of the critical path, the largest difference first; they add up to that of the
  makespans.";

/// Options of `what-if`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,

    /// The changes
    #[arg(value_name = "CHANGES", required = true)]
    changes: Vec<String>,

    /// Maximum number of parts of the critical path to print
    #[arg(long, value_name = "N", default_value = "12")]
    top: usize,
}

/// Simulates both runs and prints.
pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let base = args.scenario.scenario(session)?;
    let mut changes = Vec::new();
    for text in &args.changes {
        changes.extend(Change::list(text)?);
    }
    let what_if = WhatIf::new(&base, &changes)?;
    if session.json {
        return print_json(&what_if);
    }
    let mut text = simulated::text(&base.to_string(), &what_if.before);
    let list: Vec<String> = changes.iter().map(|c| format!("{}={}", c.key, c.value)).collect();
    text.push_str(&simulated::text(&format!("\nwith {}", list.join(", ")), &what_if.after));
    text.push_str(&format!(
        "\nmakespan {:+.1} %; the critical path changed by\n",
        what_if.change * 100.0
    ));
    text.push_str(&moved(&what_if, args.top));
    print(&text)
}

fn moved(what_if: &WhatIf, top: usize) -> String {
    let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
    let row = |step: &lapwing_traces::analysis::diff::Step| {
        [
            format!("{:+.3}", step.delta_ns as f64 / 1e6),
            ms(step.a_ns),
            ms(step.b_ns),
            step.lane.clone(),
            step.cause.clone(),
            one_line(&step.op),
        ]
    };
    let header = [
        ("ms", Align::Right),
        ("before", Align::Right),
        ("after", Align::Right),
        ("lane", Align::Left),
        ("", Align::Left),
        ("op", Align::Left),
    ];
    let mut text = table(header, what_if.moved.iter().take(top).map(row).collect());
    if what_if.moved.len() > top {
        let rest: i64 = what_if.moved[top..].iter().map(|step| step.delta_ns).sum();
        let (rest, count) = (rest as f64 / 1e6, what_if.moved.len() - top);
        text.push_str(&format!("and {rest:+.3} ms in {count} others\n"));
    }
    text
}
