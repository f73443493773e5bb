//! The targets of streams, and the times by which chunks are kept within them.

use std::time::Duration;

use lapwing_traces::Nanos;

use crate::scheduler::chunk_times::ChunkTimes;
use crate::stats::PaceStats;

/// The pace of streams.
#[derive(Debug, Default)]
pub(in crate::scheduler) struct Pace {
    /// Target of requests that name none.
    pub(in crate::scheduler) token_gap: Option<Duration>,
    /// Whether streams without a target, and background work, shorten no chunk.
    pub(super) keeps_whole: bool,
    pub(in crate::scheduler) times: ChunkTimes,
    /// Whether prompt rows were held back since the flag was cleared.
    pub(in crate::scheduler) has_held: bool,
    /// Whether the rows that are being selected are not held back.
    pub(in crate::scheduler) is_forced: bool,
    /// Time at which background work got its latest turn.
    pub(in crate::scheduler) latest_turn: Nanos,
    pub(in crate::scheduler) stats: PaceStats,
}
