//! One writer's ring: written by one thread, emptied by another, without a lock.

use crate::event::WORDS;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// A bounded queue of events between the one who writes and the one who collects. When it is
/// full, the newest event is dropped and counted: what is in the ring stays consistent.
#[derive(Debug)]
pub(super) struct Ring {
    slots: Box<[[AtomicU64; WORDS]]>,
    /// Events written so far. Only the writer changes it.
    written: AtomicU64,
    /// Events read so far. Only the collector changes it.
    read: AtomicU64,
    dropped: AtomicU64,
    /// The writer is gone.
    closed: AtomicBool,
}

impl Ring {
    /// A ring for `capacity` events, rounded up to a power of two.
    pub(super) fn new(capacity: usize) -> Ring {
        let slots = capacity.max(2).next_power_of_two();
        Ring {
            slots: (0..slots).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect(),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    fn slot(&self, number: u64) -> &[AtomicU64; WORDS] {
        &self.slots[number as usize & (self.slots.len() - 1)]
    }

    /// Adds an event; only ever called by the ring's one writer. Returns how many events are now
    /// in the ring.
    pub(super) fn push(&self, words: &[u64; WORDS]) -> usize {
        let written = self.written.load(Ordering::Relaxed);
        let held = written - self.read.load(Ordering::Acquire);
        if held as usize == self.slots.len() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return held as usize;
        }
        for (slot, word) in self.slot(written).iter().zip(words) {
            slot.store(*word, Ordering::Relaxed);
        }
        // Publishes the words: a collector that sees this number sees them.
        self.written.store(written + 1, Ordering::Release);
        held as usize + 1
    }

    /// Takes out every event; only ever called by one collector at a time.
    pub(super) fn drain(&self, mut take: impl FnMut([u64; WORDS])) {
        let written = self.written.load(Ordering::Acquire);
        let read = self.read.load(Ordering::Relaxed);
        for number in read..written {
            let slot = self.slot(number);
            take(std::array::from_fn(|word| slot[word].load(Ordering::Relaxed)));
        }
        // Frees the slots: the writer overwrites them only after it sees this number.
        self.read.store(written, Ordering::Release);
    }

    /// Events that found no room.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Whether the writer should empty the ring that now holds that many events: from half full
    /// on, and again after every eighth in case the store was busy.
    #[inline]
    pub(super) fn is_due(&self, held: usize) -> bool {
        let slots = self.slots.len();
        held * 2 >= slots && held & ((slots / 8).max(1) - 1) == 0
    }

    /// The writer writes no more; only ever called by it.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether the writer is gone: what is drained after this was seen is all that there will be.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

#[cfg(all(test, loom))]
mod interleavings {
    use std::sync::Arc;

    use super::*;

    fn words(number: u64) -> [u64; WORDS] {
        std::array::from_fn(|word| number * 100 + word as u64)
    }

    /// One writes more than fits and leaves, the other collects meanwhile.
    #[test]
    fn no_event_is_lost_torn_or_twice() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let ring = Arc::new(Ring::new(2));
            let writer = loom::thread::spawn({
                let ring = Arc::clone(&ring);
                move || {
                    for number in 1..=3 {
                        assert!(ring.push(&words(number)) <= 2);
                    }
                    ring.close();
                }
            });
            let mut seen = Vec::new();
            for _ in 0..2 {
                let closed = ring.is_closed();
                ring.drain(|words| seen.push(words));
                if closed {
                    assert_eq!(seen.len() as u64 + ring.dropped(), 3, "all after the end");
                }
            }
            writer.join().expect("the writer ends");
            ring.drain(|words| seen.push(words));
            assert_eq!(seen.len() as u64 + ring.dropped(), 3);
            let numbers: Vec<u64> = seen.iter().map(|words| words[0] / 100).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
            for event in &seen {
                assert_eq!(*event, words(event[0] / 100), "torn");
            }
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_drops_the_newest_and_counts_it() {
        let ring = Ring::new(3);
        let held: Vec<usize> = (0..6).map(|number| ring.push(&[number; WORDS])).collect();
        assert_eq!(held, [1, 2, 3, 4, 4, 4], "rounded up to a power of two");
        let mut seen = Vec::new();
        ring.drain(|words| seen.push(words[0]));
        assert_eq!((seen, ring.dropped()), (vec![0, 1, 2, 3], 2));
        assert_eq!(ring.push(&[6; WORDS]), 1, "room again");
    }
}
