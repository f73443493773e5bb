//! Identity and permits of a sequence in the engine.

use std::sync::Arc;

use lapwing_kernels::sync::{AtomicUsize, Ordering};

pub use crate::progress::RowProgress;

/// Number of a request, ascending in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub u64);

/// Counts permits; each returns when it is dropped.
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

/// Limits the number of chunks in flight.
#[derive(Debug)]
pub struct Permits(Counter);

/// Permit for one chunk in flight.
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

    /// Number of permits taken.
    pub fn in_use(&self) -> usize {
        self.0.taken.load(Ordering::Acquire)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

/// Limits the number of requests in the engine, waiting or running.
#[derive(Clone, Debug)]
pub struct AdmissionLimit(Counter);

/// Permit for one request in the engine.
#[derive(Debug)]
pub struct AdmissionPermit(Counter);

impl AdmissionLimit {
    /// At most `limit` requests.
    pub fn new(limit: usize) -> AdmissionLimit {
        AdmissionLimit(Counter::new(limit))
    }

    /// A permit, if one is free.
    pub fn try_take(&self) -> Option<AdmissionPermit> {
        self.0.try_take().map(AdmissionPermit)
    }

    /// Requests allowed at once.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Number of permits taken.
    pub fn in_use(&self) -> usize {
        self.0.taken.load(Ordering::Acquire)
    }
}

impl Drop for AdmissionPermit {
    fn drop(&mut self) {
        self.0.give_back();
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
}
