//! The power of two choices.

use lapwing_plan::registry::Parameter;
use lapwing_traces::Nanos;

use super::entry::RouteEntry;
use super::route_policy::{Incoming, RoutePolicy};
use super::worker::WorkerId;
use super::workers::Workers;

/// The power of two choices (Mitzenmacher, 2001): draws two different workers, and gives the request to the one with fewer requests in
/// flight.
#[derive(Clone, Debug)]
pub struct TwoChoices {
    state: u64,
}

impl TwoChoices {
    /// Equal seeds draw equal workers.
    pub fn new(seed: u64) -> TwoChoices {
        TwoChoices { state: seed }
    }

    /// A number below `end` (splitmix64).
    fn draw(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ (mixed >> 31)) * end as u128) >> 64) as usize
    }
}

pub(super) const ENTRY: RouteEntry = RouteEntry::new(
    "power-of-two",
    "of two workers drawn at random the one with fewer requests in flight",
    &[Parameter::new("seed", "seed of the random numbers", 0.0, 0.0..=1e15)],
    |p| Box::new(TwoChoices::new(p.count("seed") as u64)),
);

impl RoutePolicy for TwoChoices {
    fn name(&self) -> &str {
        "power-of-two"
    }

    fn route(&mut self, _request: &Incoming<'_>, workers: &Workers, _now: Nanos) -> WorkerId {
        let all = workers.count();
        let first = self.draw(all);
        if all == 1 {
            return WorkerId(0);
        }
        // One of the others, each with the same probability.
        let second = (first + 1 + self.draw(all - 1)) % all;
        let two = [first, second].map(|at| WorkerId(at as u32));
        let load = |worker: &WorkerId| (workers.load(*worker).in_flight(), *worker);
        two.into_iter().min_by_key(load).unwrap_or_default()
    }
}
