//! One worker after the other.

use lapwing_traces::Nanos;

use super::entry::RouteEntry;
use super::route_policy::{Incoming, RoutePolicy};
use super::worker::WorkerId;
use super::workers::Workers;

/// Gives each request to the next worker.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    next: usize,
}

pub(super) const ENTRY: RouteEntry =
    RouteEntry::new("round-robin", "one worker after the other", &[], |_| {
        Box::new(RoundRobin::default())
    });

impl RoutePolicy for RoundRobin {
    fn name(&self) -> &str {
        "round-robin"
    }

    fn route(&mut self, _request: &Incoming<'_>, workers: &Workers, _now: Nanos) -> WorkerId {
        let worker = WorkerId((self.next % workers.count()) as u32);
        self.next = (self.next + 1) % workers.count();
        worker
    }
}
