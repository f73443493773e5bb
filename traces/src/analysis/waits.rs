//! Predicted waits: the quality of the predictions and the cost of waiting.
//!
//! Let a wait start at s and its target end at e. The actual time is a = max(e − s, 0). The error
//! is a − ŵ for the prediction ŵ. The lateness is the time from max(e, s) to the end of the wait.
//! Without a known target, a is the whole wait.

use std::collections::BTreeMap;

use crate::event::WaitMode;
use crate::report::{Percentiles, WaitReport};
use crate::timeline::{Timeline, Wait};

/// Share of waits that must not oversleep with the suggested margin.
const ON_TIME: f64 = 0.99;
/// Number of points of the calibration curve.
const POINTS: usize = 10;

/// One report for each name and wait mode.
pub(crate) fn reports(timeline: &Timeline) -> Vec<WaitReport> {
    let mut groups: BTreeMap<(&str, WaitMode), Vec<&Wait>> = BTreeMap::new();
    for wait in &timeline.waits {
        groups.entry((&wait.name, wait.mode)).or_default().push(wait);
    }
    let report = |((name, mode), waits): ((&str, WaitMode), Vec<&Wait>)| {
        let predicted: Vec<Outcome> = waits
            .iter()
            .filter(|wait| wait.predicted > 0)
            .map(|wait| Outcome::of(timeline, wait))
            .collect();
        let errors = || predicted.iter().map(|outcome| outcome.error() as f64);
        let relative = predicted.iter().map(Outcome::relative_error);
        WaitReport {
            name: name.to_owned(),
            mode: mode.name(),
            count: waits.len(),
            slept_ns: waits.iter().map(|w| w.slept).fold(0, u64::saturating_add),
            spun_ns: waits.iter().map(|w| w.spun).fold(0, u64::saturating_add),
            late_ns: Percentiles::of(
                waits.iter().filter_map(|w| late(timeline, w)).map(|n| n as f64),
            ),
            error_ns: (!predicted.is_empty()).then(|| Percentiles::of(errors())),
            error_relative_median: Percentiles::of(relative).p50,
            margin_best_ns: margin_best(&predicted),
            histogram: histogram(predicted.iter().map(Outcome::error).collect()),
            calibration: calibration(&predicted),
        }
    };
    groups.into_iter().map(report).collect()
}

/// Outcome of a predicted wait; all times in ns.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    predicted: u64,
    actual: u64,
    /// Time slept beyond the requested sleep.
    overslept: u64,
}

impl Outcome {
    fn of(timeline: &Timeline, wait: &Wait) -> Outcome {
        let end = wait.target.map_or(wait.end, |target| timeline.spans[target].end);
        let asked = wait.predicted.saturating_sub(wait.margin);
        let sleeps = wait.mode == WaitMode::SleepThenSpin;
        Outcome {
            predicted: wait.predicted,
            actual: end.0.saturating_sub(wait.start.0),
            overslept: if sleeps { wait.slept.saturating_sub(asked) } else { 0 },
        }
    }

    fn error(&self) -> i64 {
        let clamp = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        clamp(self.actual) - clamp(self.predicted)
    }

    /// The error as a share of the longer of the predicted and the actual time: at most 1, also for a wait that was over
    /// at once.
    fn relative_error(&self) -> f64 {
        let longer = self.actual.max(self.predicted).max(1);
        self.error().unsigned_abs() as f64 / longer as f64
    }
}

fn late(timeline: &Timeline, wait: &Wait) -> Option<u64> {
    let done = timeline.spans[wait.target?].end.max(wait.start);
    Some(wait.end.0.saturating_sub(done.0))
}

/// Smallest margin in ns with which the required share of waits would have woken in time. Sleep
/// ends at predicted − margin + overslept, which must not be after the actual end.
fn margin_best(outcomes: &[Outcome]) -> Option<u64> {
    let mut needed: Vec<u64> = outcomes
        .iter()
        .map(|o| o.predicted.saturating_add(o.overslept).saturating_sub(o.actual))
        .collect();
    needed.sort_unstable();
    let rank = (needed.len() as f64 * ON_TIME).ceil() as usize;
    needed.get(rank.saturating_sub(1)).copied()
}

/// Counts of errors by size. The upper bounds are 0 and powers of two of both signs, within the
/// range of the errors.
fn histogram(errors: Vec<i64>) -> Vec<(i64, usize)> {
    let (Some(min), Some(max)) = (errors.iter().min(), errors.iter().max()) else {
        return Vec::new();
    };
    let powers =
        |limit: u64| (0..62).map(|k| 1_i64 << k).take_while(move |p| p.unsigned_abs() < limit);
    let below: Vec<i64> = powers(min.min(&0).unsigned_abs()).map(|p| -p).collect();
    let above = powers(max.max(&0).unsigned_abs());
    let mut bounds: Vec<i64> = below.into_iter().rev().chain([0]).chain(above).collect();
    bounds.retain(|bound| bound > min && bound < max);
    bounds.push(*max);
    let mut counts = vec![0; bounds.len()];
    for error in errors {
        let at = bounds.partition_point(|bound| *bound <= error);
        counts[at.min(bounds.len() - 1)] += 1;
    }
    bounds.into_iter().zip(counts).collect()
}

/// Mean predicted and mean actual time of each of [`POINTS`] equal groups, sorted by prediction.
fn calibration(outcomes: &[Outcome]) -> Vec<(f64, f64)> {
    let mut sorted = outcomes.to_vec();
    sorted.sort_by_key(|outcome| (outcome.predicted, outcome.actual));
    let size = sorted.len().div_ceil(POINTS).max(1);
    let mean = |part: &[Outcome], of: fn(&Outcome) -> u64| {
        part.iter().map(|o| of(o) as f64).sum::<f64>() / part.len() as f64
    };
    sorted
        .chunks(size)
        .map(|part| (mean(part, |o| o.predicted), mean(part, |o| o.actual)))
        .collect()
}
