//! Analysis of a timeline: overlap, idle causes, critical path and predicted waits. Each module
//! defines its figures; [`Report`](crate::report::Report) has them as plain numbers.

use crate::timeline::Timeline;

pub mod bound;
pub mod concurrent;
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
mod what_if;

pub use bound::Bound;
pub use cause::IdleCause;
pub use concurrent::{Concurrent, WorkKind, WorkSet};
pub use critical_path::{CriticalPath, Segment, SegmentKind};
pub use diff::Diff;
pub use idle::Gap;
pub use interval::busy_shares;
pub use overlap::Overlap;
pub use replay::{Replay, WhatIf};

/// Analysis of one timeline. Indices refer to its spans and lanes.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// Overlap of the lanes.
    pub overlap: Overlap,
    /// All idle time of all lanes, each gap with exactly one cause; by lane, then by time. Adjacent
    /// gaps differ in cause or blocker.
    pub gaps: Vec<Gap>,
    /// The chain of spans that determined the makespan, and the slack of every span.
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
