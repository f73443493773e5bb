//! `lapwing sweep`: a simulated run for each combination of values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lapwing_lab::simulate::{
    Axis, Change, Difference, Figure, Interference, Runs, Scenario, Simulated, Sweep, figure,
};
use lapwing_traces::whole_file;
use serde::Serialize;

use crate::cli::ScenarioArgs;
use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;

const EXAMPLES: &str = "\
Examples:
  lapwing sweep --over prompt=32:1024:32 --over strategy=npu-padding,pipe,tensor-level \\
      --plot lengths.svg --csv lengths.csv
  lapwing sweep --over gpu.bandwidth=20:80 --figure decode_tokens_per_second --plot bandwidth.svg
  lapwing sweep --over prompt=64:512:64 --set noise.spread=0.05 --repeat 10 --plot noise.svg
  lapwing sweep --over chunk=64,128,256 --strategy chunked -p 1024
  lapwing sweep --over device=gpu+npu,cpu+npu --over prompt=128:1024:128 --strategy chunk-graph
  lapwing sweep --over strategy=pipe,tensor-level --set noise.spread=0.05 --repeat 10 \\
      --figure prefill_ms --against strategy=pipe

--over: a setting (soc, device, model, prompt, decode, strategy, fast-sync, order-swap, moment,
chunk, permits, interference, verify, stepped-preparation, seed) or a number of the processors, with
its values: KEY=A,B,C or KEY=FROM:TO[:STEP]. Several options run all combinations. A number of the
processors may be a multiple of its value: gpu.rate=0.5x,1x,2x.

With --json:
  {\"axes\":[{\"key\":\"…\",\"values\":[\"…\"]}],\"settings\":{\"KEY\":\"…\"},
   \"points\":[{\"values\":[\"…\"],\"run\":{as in simulate}|null,\"error\":\"…\"|null}],
   \"differences\":[{\"others\":[\"…\"],\"value\":\"…\",\"pairs\":N,\"mean\":N,\"relative\":N,
                   \"interval\":[N,N]|null}] with --against}";

/// Options of `sweep`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,

    /// Setting or number to vary, and its values; may be repeated
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    over: Vec<String>,

    /// Run each combination with N seeds of the noise (--set noise.spread=0.05); plots show means with 95 %
    /// intervals, tables every run
    #[arg(long, value_name = "N")]
    repeat: Option<usize>,

    /// Write the table to FILE instead of stdout
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,

    /// Plot a result over the first axis that consists of numbers, a line for each combination of the
    /// others
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// The result to plot or to compare
    #[arg(long, value_name = "NUMBER", default_value = "prefill_tokens_per_second")]
    figure: String,

    /// Print how the result differs from the runs with this value of an --over, in pairs of runs that
    /// are equal otherwise (same seed), with 95 % intervals if --repeat is given
    #[arg(long, value_name = "KEY=VALUE")]
    against: Option<Change>,
}

#[derive(Serialize)]
struct Report<'a> {
    axes: Vec<AxisReport<'a>>,
    settings: BTreeMap<&'a str, &'a str>,
    points: Vec<PointReport<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    differences: Option<Vec<Difference>>,
}

#[derive(Serialize)]
struct AxisReport<'a> {
    key: &'a str,
    values: &'a [String],
}

#[derive(Serialize)]
struct PointReport<'a> {
    values: &'a [String],
    run: Option<&'a Simulated>,
    error: Option<&'a str>,
}

/// Simulates, writes and prints.
pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let figure =
        figure(&args.figure).map_err(|error| Failure::usage(format!("--figure: {error}")))?;
    let mut axes: Vec<Axis> =
        args.over.iter().map(|text| Axis::parse(text)).collect::<Result<_, _>>()?;
    if args.plot.is_some() && !axes.iter().any(|axis| axis.numbers().is_some()) {
        return Err(Failure::usage("--plot needs an axis whose values are numbers"));
    }
    let base = args.scenario.scenario(session)?;
    check_figure(figure, &base, &axes)?;
    if let Some(change) = &args.against {
        Axis::with_value(&axes, &change.key, &change.value)?;
    }
    if let Some(count) = args.repeat {
        axes.push(Axis::seeds(base.seed, count)?);
    }
    for path in args.csv.iter().chain(&args.plot) {
        whole_file::check(path).map_err(|error| Failure::file("write", path, &error))?;
    }
    let noisy = base.processors().value("noise.spread").is_ok_and(|spread| spread > 0.0);
    if args.repeat.is_some() && !noisy && !axes.iter().any(|axis| axis.key == "noise.spread") {
        session.note("note: without noise all runs are equal; add --set noise.spread=0.05");
    }
    let sweep = Sweep::run(&base, axes, &mut Runs::default())?;
    if let Some(path) = &args.plot {
        let Some(lines) = sweep.plot(figure.0) else {
            return Err(Failure::usage("--plot needs an axis whose values are numbers"));
        };
        files::write(path, lines.svg_file().as_bytes(), session)?;
    }
    if let Some(path) = &args.csv {
        files::write(path, sweep.csv().as_bytes(), session)?;
    }
    let differences = |change: &Change| sweep.differences(figure.0, &change.key, &change.value);
    match (session.json, &args.against, &args.csv) {
        (true, against, _) => {
            print_json(&report(&sweep, against.as_ref().map(differences).transpose()?))
        }
        (false, Some(change), _) => {
            print(&sweep.differences_csv(figure.0, &change.key, &change.value)?)
        }
        (false, None, None) => print(&sweep.csv()),
        (false, None, Some(_)) => Ok(()),
    }
}

/// Checks that some run has this result.
fn check_figure(figure: Figure, base: &Scenario, axes: &[Axis]) -> Result<(), Failure> {
    let varies = |key: &str, none: &str| {
        axes.iter().any(|a| a.key == key && a.values.iter().any(|v| v != none))
    };
    let name = figure.0;
    let decodes =
        (base.decode > 0 && !axes.iter().any(|a| a.key == "decode")) || varies("decode", "0");
    if name.starts_with("decode") && !decodes {
        return Err(Failure::usage(format!("--figure {name} needs decode steps: -n 32")));
    }
    let game = base.interference != Interference::None || varies("interference", "none");
    if name == "frames_per_second" && !game {
        return Err(Failure::usage(format!("--figure {name} needs --interference game")));
    }
    Ok(())
}

fn report(sweep: &Sweep, differences: Option<Vec<Difference>>) -> Report<'_> {
    Report {
        settings: sweep.settings.iter().map(|(key, value)| (&**key, &**value)).collect(),
        differences,
        axes: sweep.axes.iter().map(|a| AxisReport { key: &a.key, values: &a.values }).collect(),
        points: sweep
            .points
            .iter()
            .map(|point| PointReport {
                values: &point.values,
                run: point.outcome.as_ref().ok(),
                error: point.outcome.as_ref().err().map(String::as_str),
            })
            .collect(),
    }
}
