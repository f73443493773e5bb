//! `lapwing speculate`: speculative decoding in virtual time.

use std::path::PathBuf;
use std::time::Duration;

use lapwing_engine::draft::{DraftForm, Schedule};
use lapwing_lab::simulate::speculation::{Acceptance, Pass, Speculation, SpeculationOutcome};
use lapwing_traces::whole_file;
use serde::Serialize;

use crate::cli::acceptance;
use crate::cli::draft_form::DraftFormArgs;
use crate::cli::draft_length::{Length, length};
use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;

mod help;
mod mark;
mod plots;
mod text;

use help::EXAMPLES;
use mark::{Mark, mark};
use text::text;

/// Options of `speculate`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Probabilities that a drafted token is right
    #[arg(long, value_name = "A,…", value_delimiter = ',', default_value = "0.5,0.6,0.7,0.8,0.9")]
    acceptance: Vec<f64>,

    /// Probabilities that the first, second, … token of a draft is right if those before it are
    #[arg(
        long,
        value_name = "A,…",
        value_delimiter = ',',
        conflicts_with_all = ["acceptance", "plot", "region"]
    )]
    acceptance_at: Vec<f64>,

    /// The same from a real run: the output of `run --draft … --json`
    #[arg(
        long,
        value_name = "RUN.json",
        conflicts_with_all = ["acceptance", "acceptance_at", "plot", "region"]
    )]
    acceptance_of: Option<PathBuf>,

    /// Devices over which the target's layers are divided, 1 to 8; each takes an equal share of a pass
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1")]
    target_devices: Vec<usize>,

    /// Times of a draft model's pass, as shares of that of the target
    #[arg(long, value_name = "T,…", value_delimiter = ',', default_value = "0.1,0.3")]
    draft_time: Vec<f64>,

    /// Drafted tokens of a step, 1 to 15, or auto: as many as pay, as in the live engine
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "auto", value_parser = length)]
    draft_length: Vec<Length>,

    /// Schedules of the draft model: sync, async
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "sync,async")]
    schedule: Vec<Schedule>,

    #[command(flatten)]
    form: DraftFormArgs,

    /// Share of a pass's time that each further row adds
    #[arg(long, value_name = "SHARE", default_value = "0.02")]
    growth: f64,

    /// Share of the memory bandwidth that each model's pass takes while it is alone; all devices share it
    #[arg(long, value_name = "SHARE", default_value = "0")]
    bandwidth: f64,

    /// Run the draft model on the target's first device
    #[arg(long)]
    one_device: bool,

    /// Texts that are generated at the same time, 1 to 64
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1")]
    requests: Vec<usize>,

    /// Tokens of the prompt, which the draft model reads before its first draft
    #[arg(short, long, value_name = "N", default_value = "4")]
    prompt_tokens: usize,

    /// Tokens to generate
    #[arg(short = 'n', long, value_name = "N", default_value = "2000")]
    max_tokens: usize,

    /// Seed of the positions at which the draft model is right
    #[arg(short, long, value_name = "N", default_value = "0")]
    seed: u64,

    /// Plot the speed-up over the acceptance as an SVG file: a line for each draft time, length and schedule
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Plot the gain of asynchronous drafts over synchronous ones as an SVG file: a cell for each acceptance and draft
    /// time, and the line where both schedules are equally fast
    #[arg(long, value_name = "FILE.svg")]
    region: Option<PathBuf>,

    /// A point to mark in the region
    #[arg(long, value_name = "NAME=A,T", value_parser = mark, requires = "region")]
    mark: Vec<Mark>,
}

#[derive(Serialize)]
struct Report {
    form: FormReport,
    runs: Vec<Run>,
}

/// How drafts depart from their usual form.
#[derive(Serialize)]
struct FormReport {
    sync_bonus_pass: bool,
    pre_verify: bool,
    post_verify: bool,
}

#[derive(Serialize)]
struct Run {
    acceptance: Option<f64>,
    requests: usize,
    target_devices: usize,
    draft_time: f64,
    length: Option<usize>,
    schedule: &'static str,
    speed_up: f64,
    tokens_per_step: f64,
    accepted: Option<f64>,
    positions: Vec<(usize, usize)>,
    draft_rows: f64,
    wasted_rows: usize,
    draft_rows_wasted: usize,
}

impl Run {
    fn new(point: &Point, outcome: SpeculationOutcome) -> Run {
        let Point { acceptance, requests, target_devices, draft_time, length, schedule } = *point;
        let (speed_up, drafts) = (outcome.speed_up(), outcome.drafts);
        Run {
            acceptance,
            requests,
            target_devices,
            draft_time,
            length: length.0,
            schedule: schedule.name(),
            speed_up,
            tokens_per_step: drafts.tokens_per_step(),
            accepted: drafts.acceptance(),
            positions: drafts.positions,
            draft_rows: outcome.draft_rows,
            wasted_rows: drafts.wasted,
            draft_rows_wasted: drafts.draft_rows_wasted,
        }
    }
}

/// What a run varies.
#[derive(Clone, Copy)]
struct Point {
    /// `None` if acceptance is by position.
    acceptance: Option<f64>,
    requests: usize,
    target_devices: usize,
    draft_time: f64,
    length: Length,
    schedule: Schedule,
}

impl Args {
    /// Acceptance by position, if it is given or recorded.
    fn by_position(&self) -> Result<Option<Acceptance>, Failure> {
        if !self.acceptance_at.is_empty() {
            let rates = self.acceptance_at.as_slice().into();
            return Ok(Some(Acceptance::ByPosition { rates, seed: self.seed }));
        }
        let of_run = |path: &PathBuf| acceptance::of_run(path, self.seed);
        self.acceptance_of.as_ref().map(of_run).transpose()
    }

    /// The lines of the plot: all that varies apart from the acceptance.
    fn lines(&self) -> Vec<Point> {
        let of_devices = |requests: usize, target_devices: usize| {
            let mut lines = Vec::new();
            for &draft_time in &self.draft_time {
                for &length in &self.draft_length {
                    let line = |schedule: &Schedule| {
                        let (acceptance, schedule) = (None, *schedule);
                        Point { acceptance, requests, target_devices, draft_time, length, schedule }
                    };
                    lines.extend(self.schedule.iter().map(line));
                }
            }
            lines
        };
        let mut lines = Vec::new();
        for &requests in &self.requests {
            for &target_devices in &self.target_devices {
                lines.extend(of_devices(requests, target_devices));
            }
        }
        lines
    }
}

/// Simulates and prints.
pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    for path in args.plot.iter().chain(&args.region) {
        whole_file::check(path).map_err(|error| Failure::file("write", path, &error))?;
    }
    if args.region.is_some() {
        plots::check(args)?;
    }
    if args.form.form().pre_verify && (args.bandwidth > 0.5 || args.one_device) {
        session.note("note: --pre-verify is for models that do not share a processor or a memory's bandwidth");
    }
    let by_position = args.by_position()?;
    let mut runs = Vec::new();
    for line in args.lines() {
        let rates: Vec<Option<f64>> = match by_position {
            Some(_) => vec![None],
            None => args.acceptance.iter().copied().map(Some).collect(),
        };
        for acceptance in rates {
            let point = Point { acceptance, ..line };
            let outcome = simulate(args, &point, by_position.as_ref())?;
            runs.push(Run::new(&point, outcome));
        }
    }
    if let Some(path) = &args.plot {
        files::write(path, plots::lines(args, &runs).svg_file().as_bytes(), session)?;
    }
    if let Some(path) = &args.region {
        files::write(path, plots::region(args, &runs).svg_file().as_bytes(), session)?;
    }
    if !session.json {
        return print(&text(&runs));
    }
    let DraftForm { bonus_pass: sync_bonus_pass, pre_verify, post_verify } = args.form.form();
    print_json(&Report { form: FormReport { sync_bonus_pass, pre_verify, post_verify }, runs })
}

fn simulate(
    args: &Args,
    point: &Point,
    by_position: Option<&Acceptance>,
) -> Result<SpeculationOutcome, Failure> {
    // The unit of time does not matter.
    let millis = |share: f64| Duration::try_from_secs_f64(share * 0.1).unwrap_or_default();
    let (growth, bandwidth) = (args.growth, args.bandwidth);
    let independent = |rate| Acceptance::Independent { rate, seed: args.seed };
    let acceptance = match (point.acceptance, by_position) {
        (None, Some(acceptance)) => acceptance.clone(),
        (rate, _) => independent(rate.unwrap_or_default()),
    };
    let speculation = Speculation {
        target: Pass { one: millis(1.0), growth, bandwidth },
        draft: Pass { one: millis(point.draft_time), growth, bandwidth },
        acceptance,
        schedule: point.schedule,
        target_devices: point.target_devices,
        form: args.form.form(),
        own_device: !args.one_device,
        length: point.length.0,
        requests: point.requests,
        prompt: args.prompt_tokens,
        tokens: args.max_tokens,
    };
    speculation.run().map_err(|error| Failure::usage(error.to_string()))
}
