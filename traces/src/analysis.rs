//! What a timeline means: overlap, idle causes, critical path, waits. The definitions stand with
//! each part; [`Report`](crate::report::Report) has the same as plain numbers.

use crate::timeline::Timeline;

pub mod critical_path;
pub mod diff;
pub mod idle;
pub mod overlap;
pub mod replay;
pub mod waits;

mod cause;
pub(crate) mod interval;
mod links;
mod walk;

pub use cause::IdleCause;
pub use critical_path::{CriticalPath, Segment, SegmentKind};
pub use diff::Diff;
pub use idle::Gap;
pub use overlap::Overlap;
pub use replay::{Replay, WhatIf};

/// All that can be said of one timeline. Indices are those of its spans and lanes.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// How much ran at the same time.
    pub overlap: Overlap,
    /// Every stretch in which a lane ran nothing, with its one cause; by lane, then by time.
    /// Neighbours differ in cause or blocker.
    pub gaps: Vec<Gap>,
    /// The chain that determined the makespan, and how far every other span is from it.
    pub critical_path: CriticalPath,
}

impl Analysis {
    /// Analyses a timeline.
    pub fn new(timeline: &Timeline) -> Analysis {
        let links = links::Links::new(timeline);
        let critical_path = CriticalPath::new(timeline, &links);
        Analysis {
            overlap: Overlap::new(timeline, &critical_path),
            gaps: idle::gaps(timeline, &links),
            critical_path,
        }
    }
}
