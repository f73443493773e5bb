//! First come, first served.

use std::time::Duration;

use lapwing_plan::registry::Parameter;
use lapwing_traces::Nanos;

use super::candidate::Candidate;
use super::entry::PolicyEntry;
use super::prefix::PrefixView;
use super::queue_policy::QueuePolicy;
use super::rank::Rank;

/// First come, first served: requests go in order of arrival, one that does not fit blocks those behind
/// it, and the youngest gives its KV pages back first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fcfs;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "fcfs",
    "first come, first served; a request that does not fit blocks those behind it",
    &[],
    |_| Box::new(Fcfs),
);

impl QueuePolicy for Fcfs {
    fn name(&self) -> &str {
        "fcfs"
    }

    fn rank(&self, _request: &Candidate<'_>, _prefixes: &dyn PrefixView, _now: Nanos) -> Rank {
        Rank::EQUAL
    }

    fn goes_by_arrival(&self) -> bool {
        true
    }
}

/// First come, first served, but requests that fit overtake one that does not. It bounds how long: a request that
/// has waited `patience` blocks those behind it. Preble's `fcfs-escape` waits 10 s.
#[derive(Clone, Copy, Debug)]
pub struct FcfsOvertaking {
    /// Time from its arrival during which a request may be overtaken.
    pub patience: Duration,
}

impl Default for FcfsOvertaking {
    fn default() -> FcfsOvertaking {
        FcfsOvertaking { patience: Duration::from_secs(10) }
    }
}

pub(super) const OVERTAKING: PolicyEntry = PolicyEntry::new(
    "fcfs-overtaking",
    "as fcfs, but requests that fit overtake one that does not, for a bounded time",
    &[Parameter::new("patience", "seconds of being overtaken", 10.0, 0.0..=1e6)],
    |p| Box::new(FcfsOvertaking { patience: p.seconds("patience") }),
);

impl QueuePolicy for FcfsOvertaking {
    fn name(&self) -> &str {
        "fcfs-overtaking"
    }

    fn rank(&self, _request: &Candidate<'_>, _prefixes: &dyn PrefixView, _now: Nanos) -> Rank {
        Rank::EQUAL
    }

    fn goes_by_arrival(&self) -> bool {
        true
    }

    fn may_overtake(&self, blocked: &Candidate<'_>, now: Nanos) -> bool {
        now.since(blocked.submitted) < self.patience
    }
}
