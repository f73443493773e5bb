//! First come, first served.

use lapwing_traces::Nanos;

use super::candidate::Candidate;
use super::prefix::PrefixView;
use super::queue_policy::QueuePolicy;
use super::rank::Rank;

/// First come, first served: requests go in order of arrival, one that does not fit blocks those behind
/// it, and the youngest gives its KV pages back first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fcfs;

impl QueuePolicy for Fcfs {
    fn name(&self) -> &str {
        "fcfs"
    }

    fn rank(&self, _request: &Candidate<'_>, _prefixes: &dyn PrefixView, _now: Nanos) -> Rank {
        Rank::EQUAL
    }
}
