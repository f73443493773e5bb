//! All repetitions of a strategy at a length.

use std::time::Duration;

use lapwing_traces::{Analysis, Report, Spread, Timeline};

use crate::compare::request::Run;
use crate::compare::{Candidate, StrategyRun};
use lapwing_engine::Engine;
use lapwing_engine::error::Error;

/// All repetitions of one strategy at one length.
pub(super) struct Runs {
    pub(super) reason: String,
    pub(super) chunks: usize,
    /// Whether a run prepares graphs while it runs.
    pub(super) on_the_spot: bool,
    pub(super) predicted: Option<Duration>,
    pub(super) predicted_cold: Option<Duration>,
    pub(super) runs: Vec<Run>,
}

impl Runs {
    /// No runs yet, with plan and prediction.
    pub(super) fn planned(engine: &Engine, length: usize) -> Result<Runs, Error> {
        let plan = engine.plan(length)?;
        let on_the_spot = engine.prepares_on_the_spot(length)?;
        Ok(Runs {
            reason: plan.first().map_or_else(String::new, |chunk| chunk.reason.clone()),
            chunks: plan.len(),
            on_the_spot,
            predicted: match on_the_spot {
                true => engine.predict_new_length(length)?,
                false => engine.predict(length)?,
            },
            predicted_cold: engine.predict_cold(length)?,
            runs: Vec::new(),
        })
    }
}

/// The repetitions together.
pub(super) fn of(candidate: &Candidate, runs: Runs) -> StrategyRun {
    let Runs { reason, chunks, on_the_spot, predicted, predicted_cold, runs } = runs;
    let times: Vec<f64> = runs.iter().map(|run| run.ttft_ms).collect();
    let late = runs.iter().map(|run| run.late).sum::<Duration>() / runs.len().max(1) as u32;
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|a, b| times[*a].total_cmp(&times[*b]));
    let median = &runs[order[(order.len() - 1) / 2]];
    let mut recording = median.recording.clone();
    recording.meta.insert("strategy".to_owned(), candidate.name().to_owned());
    let timeline = Timeline::new(&recording);
    let analysis = Analysis::new(&timeline);
    let report = Report::new(&timeline, &analysis);
    let none = Spread { median: f64::NAN, min: f64::NAN, max: f64::NAN };
    StrategyRun {
        strategy: candidate.name().to_owned(),
        reason,
        chunks,
        ttft_ms: Spread::of(&times).unwrap_or(none),
        prepares_on_the_spot: on_the_spot,
        predicted,
        predicted_cold,
        ids: runs[0].ids.clone(),
        late,
        timeline,
        analysis,
        report,
    }
}
