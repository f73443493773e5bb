//! A report: the figures of a run as plain numbers, for people, pages and programs.

use std::collections::BTreeMap;

use serde::Serialize;

mod counted;
mod drafts;
mod experts;
mod figures;
mod main_cause;
mod make;
mod reads;
mod requests;
mod routed;
mod streams;
mod together;

pub use counted::{CounterReport, FreedReport};
pub use drafts::DraftReport;
pub use experts::ExpertReport;
pub use main_cause::main_cause;
pub use reads::ReadReport;
pub use routed::{RatedRouteReport, RoutedReport};
pub use streams::{DecisionsReport, LimitedReport, TokenGapReport};
pub use together::TogetherReport;

/// Version of the report format. New fields do not change it.
pub const REPORT_VERSION: u32 = 1;

/// All figures of one run. Times are in nanoseconds unless the field says otherwise; shares are
/// fractions of 1. A figure that does not exist is `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Version of the format.
    pub version: u32,
    /// Facts about the run.
    pub meta: BTreeMap<String, String>,
    /// From the first start to the last end.
    pub makespan_ns: u64,
    /// Number of spans, including inner ones.
    pub spans: usize,
    /// Number of events dropped while recording.
    pub events_dropped: u64,
    /// Number of events ignored because their counterpart is missing.
    pub events_orphaned: u64,
    /// Share of busy time during which another lane was busy as well.
    pub overlap: Option<f64>,
    /// Overlap that the dependencies allow.
    pub overlap_achievable: Option<f64>,
    /// `overlap` divided by `overlap_achievable`.
    pub overlap_efficiency: Option<f64>,
    /// Overlap of each pair of lanes that compute; with more than 64 lanes, of pairs of the 64 busiest that overlap.
    pub overlap_pairs: Vec<PairReport>,
    /// Which kinds of work ran at the same time, and the least time of the devices.
    #[serde(flatten)]
    pub together: TogetherReport,
    /// All lanes.
    pub lanes: Vec<LaneReport>,
    /// Idle time of the lanes that compute (all devices; without devices, all lanes) by cause,
    /// longest first. The idle time of each lane is in `lanes`.
    pub idle: Vec<IdleReport>,
    /// Idle time of all lanes whose cause is unknown.
    pub idle_unattributed_ns: u64,
    /// Breakdown of the makespan by the critical path, longest first.
    pub critical_path: Vec<PathReport>,
    /// Ops by name and lane, longest first.
    pub ops: Vec<OpReport>,
    /// Predicted waits, by name and mode.
    pub waits: Vec<WaitReport>,
    /// Messages by name.
    pub messages: Vec<MessageReport>,
    /// Messages per generated token.
    pub messages_per_token: Option<f64>,
    /// Requests.
    pub requests: RequestsReport,
    /// Passes of speculative decoding, by lane and role.
    pub drafts: Vec<DraftReport>,
    /// Steps that waited for data from a disk, by lane and name.
    pub reads: Vec<ReadReport>,
    /// Layers with experts whose rows were counted.
    pub experts: Vec<ExpertReport>,
    /// Why chunks have their rows and routes.
    #[serde(flatten)]
    pub decisions: DecisionsReport,
    /// Counters, such as queue depths and memory in use.
    pub counters: Vec<CounterReport>,
    /// Memory freed, by name.
    pub freed: Vec<FreedReport>,
}

/// Overlap of two lanes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairReport {
    /// First lane.
    pub a: String,
    /// Second lane.
    pub b: String,
    /// Time during which both were busy.
    pub both_ns: u64,
    /// `both_ns` divided by the busy time of the less busy lane.
    pub ratio: f64,
}

/// Figures of a lane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaneReport {
    /// Name.
    pub name: String,
    /// Kind of the lane.
    pub kind: &'static str,
    /// Largest number of concurrent spans.
    pub slots: usize,
    /// Number of outer spans.
    pub spans: usize,
    /// Time during which something ran.
    pub busy_ns: u64,
    /// Rest of the makespan; 0 for a lane that never ran anything.
    pub idle_ns: u64,
    /// Busy time divided by the makespan.
    pub utilization: f64,
    /// Busy time whose results were discarded: every row of its chunk was, or its epoch was over before it ended.
    pub wasted_ns: u64,
    /// Idle time by cause, longest first.
    pub idle: Vec<IdleReport>,
}

/// Idle time of one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IdleReport {
    /// Cause; a dependency is written `dependency on LANE`.
    pub cause: String,
    /// Time.
    pub ns: u64,
    /// Share of the idle time.
    pub share: f64,
}

/// One kind of segment of the critical path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathReport {
    /// Lane.
    pub lane: String,
    /// `running`, or the cause of waiting.
    pub cause: String,
    /// Name of the op that ran, or that the path waited for.
    pub op: String,
    /// Time on the path.
    pub ns: u64,
    /// Share of the makespan.
    pub share: f64,
    /// Number of segments.
    pub count: usize,
}

/// Figures of an op on a lane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpReport {
    /// Name.
    pub name: String,
    /// Lane.
    pub lane: String,
    /// Kind of work.
    pub activity: &'static str,
    /// Number of spans.
    pub count: usize,
    /// Time without inner spans.
    pub self_ns: u64,
    /// Durations, including inner spans.
    pub duration_ns: Percentiles,
    /// Part of `self_ns` that is on the critical path.
    pub critical_ns: u64,
    /// Smallest slack of any span.
    pub slack_min_ns: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Floating-point operations.
    pub flops: u64,
    /// Bandwidth in 10⁹ bytes per second.
    pub gb_per_s: Option<f64>,
    /// Compute rate in 10⁹ floating-point operations per second.
    pub gflop_per_s: Option<f64>,
}

/// Predicted waits of one name and mode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitReport {
    /// Name of the wait.
    pub name: String,
    /// How the thread waited.
    pub mode: &'static str,
    /// Number of waits.
    pub count: usize,
    /// Total time slept.
    pub slept_ns: u64,
    /// Total time polled, which uses a core without doing work.
    pub spun_ns: u64,
    /// Lateness: time from the end of the target to the end of the wait.
    pub late_ns: Percentiles,
    /// Prediction error, actual minus predicted time, of waits with a prediction.
    pub error_ns: Option<Percentiles>,
    /// Median of |actual − predicted| / the longer of both.
    pub error_relative_median: Option<f64>,
    /// Smallest margin with which 99 % of these waits would not have overslept.
    pub margin_best_ns: Option<u64>,
    /// Histogram of the error: upper bounds in ns, ascending, and the number of errors below each
    /// bound and not below the previous one. The last bound is the largest error.
    pub histogram: Vec<(i64, usize)>,
    /// Calibration: mean predicted and mean actual time of each tenth of the waits, ordered by
    /// prediction.
    pub calibration: Vec<(f64, f64)>,
}

/// Messages of one name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageReport {
    /// Name of the message.
    pub name: String,
    /// Number of messages.
    pub count: usize,
    /// Payload copied or moved, in bytes.
    pub bytes: u64,
    /// Number of messages that were never received.
    pub lost: usize,
    /// Delay: from sending until taken out of the mailbox.
    pub delay_ns: Percentiles,
    /// Total time stalled at the sender.
    pub held_ns: u64,
}

/// Figures of all requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestsReport {
    /// Number of requests.
    pub count: usize,
    /// Number finished.
    pub finished: usize,
    /// Number cancelled.
    pub cancelled: usize,
    /// Number failed.
    pub failed: usize,
    /// Prompt tokens of all requests.
    pub prompt_tokens: u64,
    /// Those of them that were not computed, because the prefix cache had their keys and values.
    pub cached_tokens: u64,
    /// Those that were computed although the prefix cache had their keys and values, because no state of the recurrent layers was kept
    /// behind them.
    pub recomputed_tokens: u64,
    /// Generated tokens of all requests.
    pub generated_tokens: u64,
    /// Generated tokens divided by the time from the first submission to the last token.
    pub tokens_per_second: Option<f64>,
    /// From submission to admission, in ms.
    pub queued_ms: Percentiles,
    /// Time to first token, from submission, in ms.
    pub ttft_ms: Percentiles,
    /// Time per output token after the first, mean of each request, in ms.
    pub tpot_ms: Percentiles,
    /// Inter-token latency: each gap between two tokens, in ms.
    pub itl_ms: Percentiles,
    /// Each time between two moments at which tokens of a request arrived, in ms. Unlike for ITL, tokens of one moment
    /// count once: accepted tokens of a draft.
    pub gap_ms: Percentiles,
    /// Number of these times that are longer than the target of their request; `null` if no request has one.
    pub gaps_late: Option<usize>,
    /// These times of each request that has some or has a target, by number.
    pub gaps: Vec<TokenGapReport>,
}

/// Percentiles of a set of values. All are `null` without values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Number of values.
    pub count: usize,
    /// Mean.
    pub mean: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// 50th percentile: half of the values are not above it.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}
