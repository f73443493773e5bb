//! What a sequence owns while it is in the engine: identity, permits, progress per stage.

use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, lock};

use lapwing_plan::DeviceId;

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
/// routes the chunks take. A worker that finds a chunk too early is entered here; whoever makes the
/// chunk due nudges it.
#[derive(Debug)]
pub struct Ledger {
    rows: Vec<AtomicUsize>,
    lost: AtomicBool,
    early: Mutex<Vec<DeviceId>>,
}

impl Ledger {
    /// Nothing computed yet in any of `nodes` nodes.
    pub fn new(nodes: usize) -> Ledger {
        Ledger {
            rows: (0..nodes).map(|_| AtomicUsize::new(0)).collect(),
            lost: AtomicBool::new(false),
            early: Mutex::new(Vec::new()),
        }
    }

    /// Whether the nodes may compute the rows from `start` on: all before them are computed, or
    /// none is needed any more. If not, `worker` will be nudged when that may have changed.
    pub fn is_due(&self, nodes: &Range<usize>, start: usize, worker: DeviceId) -> bool {
        // Rows pass the nodes in order, so that the last node has the fewest.
        let due = || self.is_lost() || self.rows[nodes.end - 1].load(Ordering::Acquire) == start;
        if due() {
            return true;
        }
        let mut early = lock(&self.early);
        // Whoever has changed it since then has looked at the list before this lock or will after.
        if due() {
            return true;
        }
        if !early.contains(&worker) {
            early.push(worker);
        }
        false
    }

    /// Records that the nodes have computed the rows up to `end`. Returns the workers to nudge.
    #[must_use]
    pub fn advance(&self, nodes: &Range<usize>, end: usize) -> Vec<DeviceId> {
        self.rows[nodes.clone()].iter().for_each(|rows| rows.store(end, Ordering::Release));
        std::mem::take(&mut *lock(&self.early))
    }

    /// Marks the sequence as lost: its rows need not be computed any more. Returns the workers to
    /// nudge.
    #[must_use]
    pub fn lose(&self) -> Vec<DeviceId> {
        self.lost.store(true, Ordering::Release);
        std::mem::take(&mut *lock(&self.early))
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
    fn a_worker_that_came_too_early_is_nudged_once_by_whoever_may_have_changed_that() {
        let (ledger, worker) = (Ledger::new(3), DeviceId(1));
        assert!(ledger.is_due(&(0..2), 0, worker));
        assert!(!ledger.is_due(&(0..2), 7, worker) && !ledger.is_due(&(0..3), 7, worker));
        assert_eq!(ledger.advance(&(0..2), 7), [worker]);
        assert!(ledger.is_due(&(0..2), 7, worker) && !ledger.is_due(&(0..3), 7, worker));
        assert_eq!(ledger.lose(), [worker]);
        assert!(ledger.is_due(&(0..3), 7, worker) && ledger.lose().is_empty());
    }
}
