//! What a sequence owns while it is in the engine: identity, permits, progress per stage.

use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::sync::{AtomicBool, AtomicUsize, Ordering};

use crate::plan::DeviceId;

/// Number of a request, ascending in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub u64);

/// A counter of rights, each given back when it is dropped.
#[derive(Clone, Debug)]
struct Counter {
    limit: usize,
    taken: Arc<AtomicUsize>,
}

impl Counter {
    fn new(limit: usize) -> Counter {
        Counter { limit, taken: Arc::new(AtomicUsize::new(0)) }
    }

    fn try_take(&self) -> Option<Counter> {
        self.taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| {
                (n < self.limit).then_some(n + 1)
            })
            .ok()
            .map(|_| self.clone())
    }

    fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The rights to have a chunk in flight.
#[derive(Debug)]
pub struct Permits(Counter);

/// Right to have one chunk in flight.
#[derive(Debug)]
pub struct Permit(Counter);

impl Permits {
    /// At most `limit` chunks in flight.
    pub fn new(limit: usize) -> Permits {
        Permits(Counter::new(limit))
    }

    /// A permit, if one is free.
    pub fn try_take(&self) -> Option<Permit> {
        self.0.try_take().map(Permit)
    }

    /// Permits taken.
    pub fn in_use(&self) -> usize {
        self.0.taken.load(Ordering::Acquire)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

/// The rights to have a request in the engine, waiting or running.
#[derive(Clone, Debug)]
pub struct Door(Counter);

/// Right to have one request in the engine.
#[derive(Debug)]
pub struct Ticket(Counter);

impl Door {
    /// At most `limit` requests.
    pub fn new(limit: usize) -> Door {
        Door(Counter::new(limit))
    }

    /// A ticket, if one is free.
    pub fn try_take(&self) -> Option<Ticket> {
        self.0.try_take().map(Ticket)
    }

    /// Requests allowed at once.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Tickets taken.
    pub fn in_use(&self) -> usize {
        self.0.taken.load(Ordering::Acquire)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

/// How many rows of a sequence each node of the graph has computed. It travels with the sequence's
/// chunks, so that a worker can see whether the rows before a chunk are in the cache yet, whatever
/// routes the chunks take.
#[derive(Debug)]
pub struct Ledger {
    rows: Vec<AtomicUsize>,
    lost: AtomicBool,
    /// Devices, by bit, where a chunk waits for rows that another device computes.
    waiting: AtomicUsize,
}

impl Ledger {
    /// Nothing computed yet in any of `nodes` nodes.
    pub fn new(nodes: usize) -> Ledger {
        Ledger {
            rows: (0..nodes).map(|_| AtomicUsize::new(0)).collect(),
            lost: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Rows that all of the nodes have computed. Rows pass the nodes in order, so that the last
    /// node has the fewest.
    pub fn rows(&self, nodes: &Range<usize>) -> usize {
        self.rows[nodes.end - 1].load(Ordering::Acquire)
    }

    /// Records that the nodes have computed the rows up to `end`.
    pub fn advance(&self, nodes: &Range<usize>, end: usize) {
        // A reader that sees the last node's rows sees what was written before them.
        self.rows[nodes.clone()].iter().for_each(|rows| rows.store(end, Ordering::Release));
    }

    /// Records that a chunk waits at a device for rows before it. Whoever changes the ledger after
    /// that wakes the device; a change that came before is seen by a look at the rows after this.
    pub fn wait(&self, device: DeviceId) {
        debug_assert!(device.0 < usize::BITS as usize, "more devices than bits");
        self.waiting.fetch_or(1 << (device.0 % usize::BITS as usize), Ordering::AcqRel);
    }

    /// Devices to wake after a change.
    pub fn take_waiting(&self) -> impl Iterator<Item = DeviceId> + use<> {
        let waiting = self.waiting.swap(0, Ordering::AcqRel);
        (0..usize::BITS as usize).filter(move |bit| waiting >> bit & 1 == 1).map(DeviceId)
    }

    /// Marks the sequence as lost: its rows need not be computed any more.
    pub fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Whether the sequence is lost.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_comes_back_when_its_holder_is_dropped() {
        let permits = Permits::new(2);
        let (a, b) = (permits.try_take(), permits.try_take());
        assert!(a.is_some() && b.is_some() && permits.try_take().is_none());
        drop(a);
        assert_eq!(permits.in_use(), 1);
        assert!(permits.try_take().is_some());
    }

    #[test]
    fn a_stage_has_computed_what_its_last_node_has() {
        let ledger = Ledger::new(3);
        ledger.advance(&(0..2), 7);
        assert_eq!((ledger.rows(&(0..1)), ledger.rows(&(0..2)), ledger.rows(&(0..3))), (7, 7, 0));
        assert!(!ledger.is_lost());
        ledger.lose();
        assert!(ledger.is_lost());
    }
}
