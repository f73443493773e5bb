//! The critical path: the chain of work and waiting that determined the makespan.

use super::bubble::Cause;

/// What a stretch of the critical path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SegmentKind {
    /// This span (an index, the innermost at that time) was running.
    Running(usize),
    /// Nothing on the path was running, because of this; then this span (an index) began.
    Waiting(Cause, usize),
}

/// A stretch of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index of the lane.
    pub lane: usize,
    /// From, in ns.
    pub start: u64,
    /// To, in ns.
    pub end: u64,
    /// What.
    pub kind: SegmentKind,
}

/// The chain from the start of the timeline to its end, and everything's distance from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// Stretches by time, without gaps: their lengths add up to the makespan.
    pub segments: Vec<Segment>,
    /// Outer spans on the path, by time.
    pub spans: Vec<usize>,
    /// Message (an index) over which the path goes to each of `spans`, if it does.
    pub messages: Vec<Option<usize>>,
    /// By span: how much later it could have ended without a longer makespan, in ns. An inner
    /// span has that of its outermost ancestor.
    pub slack: Vec<u64>,
}

impl CriticalPath {
    pub(super) fn new(_t: &crate::Timeline, _l: &super::chain::Links) -> CriticalPath {
        unimplemented!()
    }
}
