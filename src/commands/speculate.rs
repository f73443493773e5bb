//! `lapwing speculate`: speculative decoding in virtual time.

use std::path::PathBuf;
use std::time::Duration;

use lapwing::draft::Schedule;
use lapwing::simulate::plot::{Lines, Series};
use lapwing::simulate::speculation::{Acceptance, Pass, Speculation, SpeculationOutcome};
use lapwing_traces::whole_file;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::table::{Align, table};

const EXAMPLES: &str = "\
Examples:
  lapwing speculate
  lapwing speculate --acceptance 0.76,0.93 --draft-time 0.38 --draft-length 1,3,5,auto
  lapwing speculate --acceptance 0.5,0.6,0.7,0.8,0.9 --draft-time 0.1,0.6 --plot async.svg
  lapwing speculate --bandwidth 0.9         two devices that share one memory
  lapwing speculate --one-device --growth 0.15

The engine's own scheduler, workers and drafts run on two models whose passes take the stated
times. With two devices, passes slow down while the bandwidth that both take is above 1 in sum.

With --json:
  {\"runs\":[{\"acceptance\":F,\"draft_time\":F,\"length\":N|null,\"schedule\":\"sync|async\",
   \"speed_up\":F,\"tokens_per_step\":F,\"accepted\":F|null,\"draft_rows\":F}]}
  speed_up: multiple of the speed without drafts; accepted: share of the verified tokens;
  draft_rows: rows of the draft model for each generated token; 1 if every draft is right.";

/// Options of `speculate`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Probabilities that a drafted token is right
    #[arg(long, value_name = "A,…", value_delimiter = ',', default_value = "0.5,0.6,0.7,0.8,0.9")]
    acceptance: Vec<f64>,

    /// Times of a draft model's pass, as shares of that of the target
    #[arg(long, value_name = "T,…", value_delimiter = ',', default_value = "0.1,0.3")]
    draft_time: Vec<f64>,

    /// Drafted tokens of a step, 1 to 15, or auto: as many as pay, as in the live engine
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "auto", value_parser = length)]
    draft_length: Vec<Length>,

    /// Schedules of the draft model: sync, async
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "sync,async")]
    schedule: Vec<Schedule>,

    /// Share of a pass's time that each further row adds
    #[arg(long, value_name = "SHARE", default_value = "0.02")]
    growth: f64,

    /// Share of the memory bandwidth that each model's pass takes while it is alone; two devices share it
    #[arg(long, value_name = "SHARE", default_value = "0")]
    bandwidth: f64,

    /// Run both models on one device
    #[arg(long)]
    one_device: bool,

    /// Tokens to generate
    #[arg(short = 'n', long, value_name = "N", default_value = "2000")]
    max_tokens: usize,

    /// Seed of the positions at which the draft model is right
    #[arg(short, long, value_name = "N", default_value = "0")]
    seed: u64,

    /// Plot the speed-up over the acceptance as an SVG file: a line for each draft time, length and schedule
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// Drafted tokens of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Length(Option<usize>);

fn length(text: &str) -> Result<Length, String> {
    match text {
        "auto" => Ok(Length(None)),
        _ => match text.parse() {
            Ok(length) => Ok(Length(Some(length))),
            Err(_) => Err("it must be a number from 1 to 15, or auto".to_owned()),
        },
    }
}

impl Length {
    fn name(self) -> String {
        self.0.map_or("auto".to_owned(), |length| length.to_string())
    }
}

#[derive(Serialize)]
struct Report {
    runs: Vec<Run>,
}

#[derive(Serialize)]
struct Run {
    acceptance: f64,
    draft_time: f64,
    length: Option<usize>,
    schedule: &'static str,
    speed_up: f64,
    tokens_per_step: f64,
    accepted: Option<f64>,
    draft_rows: f64,
}

/// Simulates and prints.
pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    if let Some(path) = &args.plot {
        whole_file::check(path).map_err(|error| Failure::file("write", path, &error))?;
    }
    let (mut runs, mut lines) = (Vec::new(), Vec::new());
    for &draft_time in &args.draft_time {
        for &length in &args.draft_length {
            for &schedule in &args.schedule {
                let mut points = Vec::new();
                for &acceptance in &args.acceptance {
                    let outcome = simulate(args, (acceptance, draft_time), (length, schedule))?;
                    points.push((acceptance, outcome.speed_up()));
                    runs.push(Run {
                        acceptance,
                        draft_time,
                        length: length.0,
                        schedule: schedule.name(),
                        speed_up: outcome.speed_up(),
                        tokens_per_step: outcome.drafts.tokens_per_step(),
                        accepted: outcome.drafts.acceptance(),
                        draft_rows: outcome.draft_rows,
                    });
                }
                let drafted = length.0.map(|n| format!(", {n} tokens")).unwrap_or_default();
                let name = format!("{} {draft_time}{drafted}", schedule.name());
                lines.push(Series::new(name, points));
            }
        }
    }
    if let Some(path) = &args.plot {
        let lines = Lines {
            title: "Speed-up by drafts, by schedule and time of a draft pass".to_owned(),
            x: "probability that a drafted token is right".to_owned(),
            y: "speed as a multiple of that without drafts".to_owned(),
            series: lines,
        };
        files::write(path, lines.svg_file().as_bytes(), session)?;
    }
    if session.json { print_json(&Report { runs }) } else { print(&text(&runs)) }
}

fn simulate(
    args: &Args,
    (rate, draft_time): (f64, f64),
    (length, schedule): (Length, Schedule),
) -> Result<SpeculationOutcome, Failure> {
    // The unit of time does not matter.
    let millis = |share: f64| Duration::try_from_secs_f64(share * 0.1).unwrap_or_default();
    let (growth, bandwidth) = (args.growth, args.bandwidth);
    let speculation = Speculation {
        target: Pass { one: millis(1.0), growth, bandwidth },
        draft: Pass { one: millis(draft_time), growth, bandwidth },
        acceptance: Acceptance::Independent { rate, seed: args.seed },
        schedule,
        two_devices: !args.one_device,
        length: length.0,
        tokens: args.max_tokens,
    };
    speculation.run().map_err(|error| Failure::usage(error.to_string()))
}

fn text(runs: &[Run]) -> String {
    let right = |title| (title, Align::Right);
    let header = [
        right("acceptance"),
        right("draft time"),
        right("length"),
        ("schedule", Align::Left),
        right("speed-up"),
        right("tokens/step"),
        right("accepted"),
        right("draft rows/token"),
    ];
    let row = |run: &Run| {
        [
            run.acceptance.to_string(),
            run.draft_time.to_string(),
            Length(run.length).name(),
            run.schedule.to_owned(),
            format!("{:.2}", run.speed_up),
            format!("{:.2}", run.tokens_per_step),
            run.accepted.map_or("-".to_owned(), |share| format!("{:.0} %", 100.0 * share)),
            format!("{:.2}", run.draft_rows),
        ]
    };
    table(header, runs.iter().map(row).collect())
}
