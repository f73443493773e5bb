//! Identity and permits of a sequence in the engine.

use std::sync::Arc;

use lapwing_kernels::sync::{AtomicUsize, Ordering};

pub use crate::progress::RowProgress;

/// Number of a request, ascending in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub u64);

impl SequenceId {
    /// Marks the sequence of a draft model.
    const DRAFT: u64 = 1 << 63;
    /// Bits of the request's number.
    const REQUEST: u64 = (1 << 40) - 1;

    /// The `number`-th sequence of a draft model for this request. A request that is preempted gets a new one,
    /// while chunks of the last one may still be in flight.
    #[must_use]
    pub fn draft(self, number: u64) -> SequenceId {
        let number = (number << 40) & !(SequenceId::DRAFT | SequenceId::REQUEST);
        SequenceId(self.request().0 | number | SequenceId::DRAFT)
    }

    /// Whether it is the sequence of a draft model.
    pub fn is_draft(self) -> bool {
        self.0 & SequenceId::DRAFT != 0
    }

    /// The request: itself, or the one that a draft model's sequence serves.
    #[must_use]
    pub fn request(self) -> SequenceId {
        SequenceId(self.0 & SequenceId::REQUEST)
    }
}

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
    fn a_draft_models_sequence_names_its_request() {
        let request = SequenceId(7);
        assert!(!request.is_draft() && request.request() == request);
        let (first, second) = (request.draft(0), request.draft(1));
        assert!(first.is_draft() && second.is_draft() && first != second);
        assert_eq!((first.request(), second.request()), (request, request));
        assert!(first > SequenceId(1 << 39), "it ranks behind all requests");
    }

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
