//! Plots of simulated runs.

use lapwing_engine::draft::Schedule;
use lapwing_lab::simulate::plot::{Lines, Region, Series};

use super::{Args, Run};
use crate::cli::failure::Failure;

/// What all plots say of their origin.
const SIMULATED: &str = "Simulated; the time of a draft pass is a share of that of a target pass.";

/// Speeds that differ by no more than this share are equal: another seed changes them as much.
const TIE: f64 = 0.02;

/// The speed-up over the acceptance: a line for each draft time, length and schedule.
pub(super) fn lines(args: &Args, runs: &[Run]) -> Lines {
    let of_line = runs.chunks(args.acceptance.len().max(1));
    let series = of_line.filter_map(|runs| {
        let points = runs.iter().filter_map(|run| Some((run.acceptance?, run.speed_up)));
        Some(Series::new(runs.first()?.name(args), points.collect()))
    });
    Lines {
        title: "Speed-up by drafts, by schedule and time of a draft pass".to_owned(),
        x: "probability that a drafted token is right".to_owned(),
        y: "speed as a multiple of that without drafts".to_owned(),
        caption: SIMULATED.to_owned(),
        series: series.collect(),
    }
}

/// Checks that the options give one cell for each acceptance and draft time.
pub(super) fn check(args: &Args) -> Result<(), Failure> {
    let counts = [args.target_devices.len(), args.draft_length.len(), args.requests.len()];
    let is_single = counts == [1; 3];
    let has_both = Schedule::ALL.iter().all(|schedule| args.schedule.contains(schedule));
    if is_single && has_both {
        return Ok(());
    }
    let expected = "--region compares both schedules; leave out --schedule, and give one --draft-length, one \
                    --target-devices and one --requests";
    Err(Failure::usage(expected))
}

/// The gain of asynchronous drafts over synchronous ones, by acceptance and time of a draft pass.
pub(super) fn region(args: &Args, runs: &[Run]) -> Region {
    let (columns, rows) = (ascending(&args.acceptance), ascending(&args.draft_time));
    let speed = |schedule: Schedule, acceptance: f64, draft_time: f64| {
        let of = |run: &&Run| {
            run.schedule == schedule.name()
                && run.acceptance == Some(acceptance)
                && run.draft_time == draft_time
        };
        runs.iter().find(of).map_or(f64::NAN, |run| run.speed_up)
    };
    let gain = |acceptance: f64, draft_time: f64| {
        let of = |schedule| speed(schedule, acceptance, draft_time);
        of(Schedule::Asynchronous) / of(Schedule::Synchronous)
    };
    let values = rows.iter().map(|time| columns.iter().map(|rate| gain(*rate, *time)).collect());
    let marks = args.mark.iter().map(|mark| (mark.name.clone(), mark.acceptance, mark.draft_time));
    Region {
        title: "Speed with asynchronous drafts as a multiple of that with synchronous ones"
            .to_owned(),
        x: "probability that a drafted token is right".to_owned(),
        y: "time of a draft pass / time of a target pass".to_owned(),
        caption: SIMULATED.to_owned(),
        values: values.collect(),
        border: 1.0,
        tie: TIE,
        sides: ["async is faster", "sync is faster"].map(str::to_owned),
        marks: marks.collect(),
        columns,
        rows,
    }
}

fn ascending(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

impl Run {
    /// The name of its line.
    fn name(&self, args: &Args) -> String {
        let drafted = self.length.map(|n| format!(", {n} tokens")).unwrap_or_default();
        let devices = match args.target_devices.len() {
            1 => String::new(),
            _ => format!(", target on {}", self.target_devices),
        };
        let requests = match args.requests.len() {
            1 => String::new(),
            _ => format!(", {} requests", self.requests),
        };
        format!("{} {}{drafted}{devices}{requests}", self.schedule, self.draft_time)
    }
}
