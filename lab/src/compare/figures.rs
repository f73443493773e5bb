//! Numbers of a strategy's runs.

use lapwing_traces::event::{Activity, LaneKind};
use lapwing_traces::report::{LaneReport, main_cause};
use serde::Serialize;

use super::StrategyRun;

/// Numbers of a strategy's runs at one length. `null` where a number does not exist.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// Name of the strategy.
    pub strategy: String,
    /// Why it chose the route of the first chunk.
    pub reason: String,
    /// Number of chunks of the prompt.
    pub chunks: usize,
    /// Median time to first token, in ms.
    pub ttft_ms: f64,
    /// Minimum time to first token, in ms.
    pub ttft_min_ms: f64,
    /// Maximum time to first token, in ms.
    pub ttft_max_ms: f64,
    /// Mean time per output token after the first, in the recorded repetition, in ms.
    pub tpot_ms: Option<f64>,
    /// First start to last end in the recorded repetition, including generated tokens, in ms.
    pub makespan_ms: f64,
    /// Share of the devices' busy time during which another device was busy, too.
    pub overlap: Option<f64>,
    /// Idle time of the devices by cause, longest first, in ms; `not used` is that of devices that ran nothing.
    pub idle: Vec<IdleFigure>,
    /// Bytes read and written to merge parts and to convert values for other devices.
    pub copied_bytes: u64,
    /// Bytes of messages from one device to another.
    pub handed_over_bytes: u64,
    /// Error of predicted waits: the median of |actual − predicted| / actual for each kind of wait,
    /// and of these the median weighted by the number of waits.
    pub wait_error: Option<f64>,
    /// Whether it prepares graphs on the spot, which is part of the measured times.
    pub prepares_on_the_spot: bool,
    /// Predicted time of the prompt as in the measured runs, in ms: in a warm engine, with the
    /// preparation of graphs on the spot.
    pub predicted_ms: Option<f64>,
    /// Predicted time in an engine that has no graphs yet, in ms.
    pub predicted_cold_ms: Option<f64>,
    /// Relative error of the prediction: (predicted − measured) / measured time to first token.
    pub prediction_error: Option<f64>,
    /// Mean time by which devices exceeded their model, in ms.
    pub late_ms: f64,
    /// Energy, in J; `null`, as no device of this version measures it.
    pub energy_j: Option<f64>,
    /// The tokens generated in the first repetition.
    pub ids: Vec<u32>,
}

/// Idle time of one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct IdleFigure {
    /// The cause.
    pub cause: String,
    /// Time of all devices together, in ms.
    pub ms: f64,
}

/// Cause of the idle time of devices that ran nothing.
const NOT_USED: &str = "not used";

impl Figures {
    /// The cause of most idle time and its time in ms. Dependencies on several devices are one cause.
    pub fn main_idle(&self) -> Option<IdleFigure> {
        let main = main_cause(self.idle.iter().map(|idle| (idle.cause.as_str(), idle.ms)));
        main.map(|(cause, ms)| IdleFigure { cause, ms })
    }
}

impl StrategyRun {
    /// Numbers of the runs.
    pub fn figures(&self) -> Figures {
        let report = &self.report;
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
        let predicted_ms = self.predicted.map(ms);
        let ttft_ms = self.ttft_ms.median;
        Figures {
            strategy: self.strategy.clone(),
            reason: self.reason.clone(),
            chunks: self.chunks,
            ttft_ms,
            ttft_min_ms: self.ttft_ms.min,
            ttft_max_ms: self.ttft_ms.max,
            tpot_ms: report.requests.tpot_ms.p50,
            makespan_ms: report.makespan_ns as f64 / 1e6,
            overlap: report.overlap,
            idle: self.idle(),
            copied_bytes: self.copied_bytes(),
            handed_over_bytes: self.handed_over_bytes(),
            wait_error: self.wait_error(),
            prepares_on_the_spot: self.prepares_on_the_spot,
            predicted_ms,
            predicted_cold_ms: self.predicted_cold.map(ms),
            prediction_error: predicted_ms.map(|ms| (ms - ttft_ms) / ttft_ms),
            late_ms: self.late.as_secs_f64() * 1e3,
            energy_j: None,
            ids: self.ids.clone(),
        }
    }

    /// Idle time of the devices by cause. A device that ran nothing was idle all the time.
    fn idle(&self) -> Vec<IdleFigure> {
        let report = &self.report;
        let figure =
            |cause: &str, ns: u64| IdleFigure { cause: cause.to_owned(), ms: ns as f64 / 1e6 };
        let mut idle: Vec<IdleFigure> =
            report.idle.iter().map(|idle| figure(&idle.cause, idle.ns)).collect();
        let is_unused =
            |lane: &&LaneReport| lane.kind == LaneKind::Device.name() && lane.spans == 0;
        let unused = report.lanes.iter().filter(is_unused).count() as u64;
        if unused > 0 {
            idle.push(figure(NOT_USED, unused.saturating_mul(report.makespan_ns)));
        }
        idle.sort_by(|a, b| b.ms.total_cmp(&a.ms));
        idle
    }

    fn copied_bytes(&self) -> u64 {
        let moves = [Activity::Copy, Activity::Convert];
        let spans = self.timeline.spans.iter().filter(|span| moves.contains(&span.activity));
        spans.map(|span| span.tags.bytes).sum()
    }

    fn handed_over_bytes(&self) -> u64 {
        let is_device = |lane: usize| self.timeline.lanes[lane].kind == LaneKind::Device;
        let between = self.timeline.messages.iter().filter(|message| {
            is_device(message.from_lane)
                && message.to_lane.is_some_and(|to| to != message.from_lane && is_device(to))
        });
        between.map(|message| message.bytes).sum()
    }

    /// Median error over all kinds of waits, weighted by their number; `None` without waits.
    fn wait_error(&self) -> Option<f64> {
        let known = self.report.waits.iter();
        let known = known.filter_map(|wait| Some((wait.error_relative_median?, wait.count)));
        let mut errors: Vec<(f64, usize)> = known.collect();
        errors.sort_by(|a, b| a.0.total_cmp(&b.0));
        let half = errors.iter().map(|(_, count)| count).sum::<usize>().div_ceil(2);
        let mut seen = 0;
        errors.into_iter().find_map(|(error, count)| {
            seen += count;
            (seen >= half).then_some(error)
        })
    }
}
