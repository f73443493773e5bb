//! The least loaded worker.

use lapwing_traces::Nanos;

use super::entry::RouteEntry;
use super::route_policy::{Incoming, RoutePolicy};
use super::worker::WorkerId;
use super::workers::Workers;

/// Gives each request to the worker with the fewest requests in flight; of several, to the one that was sent the fewest.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastLoad;

pub(super) const ENTRY: RouteEntry =
    RouteEntry::new("least-load", "the worker with the fewest requests in flight", &[], |_| {
        Box::new(LeastLoad)
    });

impl RoutePolicy for LeastLoad {
    fn name(&self) -> &str {
        "least-load"
    }

    fn route(&mut self, _request: &Incoming<'_>, workers: &Workers, _now: Nanos) -> WorkerId {
        workers.least()
    }
}
