//! A timeline as plain numbers, for people, pages and machines alike.

use std::collections::BTreeMap;

use serde::Serialize;

mod figures;
mod make;
mod requests;

/// Version of the report's form. Fields may be added without a new one.
pub const REPORT_VERSION: u32 = 1;

/// All numbers of one run. Times are in nanoseconds unless the field says otherwise; shares are
/// of 1. A number that does not exist is `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Version of this form.
    pub version: u32,
    /// Facts about the run.
    pub meta: BTreeMap<String, String>,
    /// First start to last end.
    pub makespan_ns: u64,
    /// Spans, inner ones included.
    pub spans: usize,
    /// Events that found no room when they were recorded.
    pub events_dropped: u64,
    /// Events that say nothing because their counterpart is missing.
    pub events_orphaned: u64,
    /// Share of busy time that ran beside other busy time (T1).
    pub overlap: Option<f64>,
    /// What the dependencies allow.
    pub overlap_achievable: Option<f64>,
    /// The one by the other.
    pub overlap_efficiency: Option<f64>,
    /// Each two of the lanes that compute; of more than 64 lanes only the 64 busiest count here,
    /// and only those two of them that ran at the same time.
    pub overlap_pairs: Vec<PairReport>,
    /// Every lane.
    pub lanes: Vec<LaneReport>,
    /// Idle time of the lanes that compute (all devices; without devices, all lanes) by cause (T2),
    /// longest first. Each lane has its own in `lanes`.
    pub idle: Vec<IdleReport>,
    /// Idle time of any lane that nothing in the recording explains.
    pub idle_unattributed_ns: u64,
    /// What the makespan consists of (T3), longest first.
    pub critical_path: Vec<PathReport>,
    /// Ops by name and lane, longest first.
    pub ops: Vec<OpReport>,
    /// Predicted waits (T5), by name and mode.
    pub waits: Vec<WaitReport>,
    /// Messages by name.
    pub messages: Vec<MessageReport>,
    /// Messages for each generated token.
    pub messages_per_token: Option<f64>,
    /// Requests.
    pub requests: RequestsReport,
    /// Counters: queue depths, memory in use.
    pub counters: Vec<CounterReport>,
    /// Memory given back, by name.
    pub freed: Vec<FreedReport>,
}

/// Overlap of two lanes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairReport {
    /// One lane.
    pub a: String,
    /// The other.
    pub b: String,
    /// Time in which both ran something.
    pub both_ns: u64,
    /// That, by the busy time of the less busy one.
    pub ratio: f64,
}

/// A lane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaneReport {
    /// Name.
    pub name: String,
    /// What it is.
    pub kind: &'static str,
    /// Most spans at the same time.
    pub slots: usize,
    /// Outer spans.
    pub spans: usize,
    /// Time in which something ran.
    pub busy_ns: u64,
    /// The rest of the makespan; 0 for a lane that never runs anything.
    pub idle_ns: u64,
    /// Busy share of the makespan.
    pub utilization: f64,
    /// Busy time whose result was thrown away, because its epoch was over.
    pub wasted_ns: u64,
    /// Idle time by cause, longest first.
    pub idle: Vec<IdleReport>,
}

/// Idle time of one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IdleReport {
    /// The cause; for a dependency, `dependency on LANE`.
    pub cause: String,
    /// Time.
    pub ns: u64,
    /// Share of the idle time.
    pub share: f64,
}

/// One kind of stretch on the critical path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathReport {
    /// Lane.
    pub lane: String,
    /// `running`, or the cause of waiting.
    pub cause: String,
    /// Name of the op that ran or was waited for.
    pub op: String,
    /// Time on the path.
    pub ns: u64,
    /// Share of the makespan.
    pub share: f64,
    /// Stretches.
    pub count: usize,
}

/// An op on a lane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpReport {
    /// Name.
    pub name: String,
    /// Lane.
    pub lane: String,
    /// Kind of work.
    pub activity: &'static str,
    /// How often.
    pub count: usize,
    /// Time without that of inner spans.
    pub self_ns: u64,
    /// Durations, inner spans included.
    pub duration_ns: Percentiles,
    /// Part of `self_ns` on the critical path.
    pub critical_ns: u64,
    /// Least slack.
    pub slack_min_ns: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Floating-point operations.
    pub flops: u64,
    /// 10⁹ bytes per second.
    pub gb_per_s: Option<f64>,
    /// 10⁹ floating-point operations per second.
    pub gflop_per_s: Option<f64>,
}

/// Predicted waits of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitReport {
    /// Which kind.
    pub name: String,
    /// How they were spent.
    pub mode: &'static str,
    /// How many.
    pub count: usize,
    /// Total time slept.
    pub slept_ns: u64,
    /// Total time polled: a core's energy spent for nothing.
    pub spun_ns: u64,
    /// Waits that went on after their target had ended: how long.
    pub late_ns: Percentiles,
    /// Actual minus predicted time, of waits with a prediction.
    pub error_ns: Option<Percentiles>,
    /// Median of |actual − predicted| / actual.
    pub error_relative_median: Option<f64>,
    /// Smallest margin with which 99 % of these waits would not have overslept.
    pub margin_best_ns: Option<u64>,
    /// Counts of the error by size: upper bounds in ns, ascending, and how many lie below each
    /// and not below the one before. The last bound is the largest error.
    pub histogram: Vec<(i64, usize)>,
    /// Calibration: mean predicted and mean actual time of each tenth of the waits by prediction.
    pub calibration: Vec<(f64, f64)>,
}

/// Messages of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageReport {
    /// Which kind.
    pub name: String,
    /// How many.
    pub count: usize,
    /// Payload that was copied or moved.
    pub bytes: u64,
    /// Messages that nobody took.
    pub lost: usize,
    /// From being sent to being taken out of the mailbox.
    pub delay_ns: Percentiles,
    /// Time for which they were held back before.
    pub held_ns: u64,
}

/// Requests of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestsReport {
    /// How many came.
    pub count: usize,
    /// Ended well.
    pub finished: usize,
    /// Cancelled.
    pub cancelled: usize,
    /// Failed.
    pub failed: usize,
    /// Prompt tokens of all.
    pub prompt_tokens: u64,
    /// Generated tokens of all.
    pub generated_tokens: u64,
    /// Generated tokens by the time from the first submission to the last token.
    pub tokens_per_second: Option<f64>,
    /// Submission to admission, in ms.
    pub queued_ms: Percentiles,
    /// Submission to first token, in ms.
    pub ttft_ms: Percentiles,
    /// Mean time per token after the first, of each request, in ms.
    pub tpot_ms: Percentiles,
    /// Every gap between two tokens, in ms.
    pub itl_ms: Percentiles,
}

/// A counter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterReport {
    /// Name.
    pub name: String,
    /// Lane that counts.
    pub lane: String,
    /// Smallest value.
    pub min: i64,
    /// Largest.
    pub max: i64,
    /// Mean over time.
    pub mean: f64,
    /// Last.
    pub last: i64,
}

/// Memory given back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FreedReport {
    /// What for.
    pub name: String,
    /// How often.
    pub count: usize,
    /// How much.
    pub bytes: u64,
}

/// How values are spread. All `null` without values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Values.
    pub count: usize,
    /// Mean.
    pub mean: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// Half are not above it.
    pub p50: Option<f64>,
    /// 90 % are not above it.
    pub p90: Option<f64>,
    /// 95 % are not above it.
    pub p95: Option<f64>,
    /// 99 % are not above it.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}
