//! Priorities, and earliest deadline first within a priority.

use lapwing_traces::Nanos;

use super::candidate::Candidate;
use super::entry::PolicyEntry;
use super::prefix::PrefixView;
use super::queue_policy::QueuePolicy;
use super::rank::Rank;

/// The highest priority goes first, then the earliest deadline (Liu and Layland, 1973), then the earliest arrival.
/// Requests without a deadline come after those of their priority that have one. Requests of a low priority can
/// starve.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edf;

pub(super) const ENTRY: PolicyEntry =
    PolicyEntry::new("edf", "priorities, and within each the earliest deadline first", &[], |_| {
        Box::new(Edf)
    });

impl QueuePolicy for Edf {
    fn name(&self) -> &str {
        "edf"
    }

    fn rank(&self, request: &Candidate<'_>, _prefixes: &dyn PrefixView, _now: Nanos) -> Rank {
        let due = request.urgency.deadline.map(|deadline| request.submitted + deadline);
        let due = due.map_or(f64::INFINITY, |due| due.0 as f64);
        Rank(-f64::from(request.urgency.priority), due)
    }
}
