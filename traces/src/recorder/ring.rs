//! Lock-free ring of one writer: one thread writes, another drains.

use crate::event::WORDS;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// Bounded single-producer, single-consumer queue of events. When it is full, new events are
/// dropped and counted; events in the ring are never overwritten.
#[derive(Debug)]
pub(super) struct Ring {
    slots: Box<[[AtomicU64; WORDS]]>,
    /// Number of events written. Only the writer changes it.
    written: AtomicU64,
    /// Number of events read. Only the collector changes it.
    read: AtomicU64,
    /// Number of events dropped since the collector last asked.
    dropped: AtomicU64,
    /// Time of the latest event dropped, in ns. Only the writer changes it.
    dropped_at: AtomicU64,
    /// The writer was dropped.
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
            dropped_at: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    fn slot(&self, number: u64) -> &[AtomicU64; WORDS] {
        &self.slots[number as usize & (self.slots.len() - 1)]
    }

    /// Adds an event and returns the number of events now in the ring. Only the ring's writer may
    /// call it.
    pub(super) fn push(&self, words: &[u64; WORDS]) -> usize {
        let written = self.written.load(Ordering::Relaxed);
        let events = written - self.read.load(Ordering::Acquire);
        if events as usize == self.slots.len() {
            // The number publishes the time.
            self.dropped_at.store(words[0], Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Release);
            return events as usize;
        }
        for (slot, word) in self.slot(written).iter().zip(words) {
            slot.store(*word, Ordering::Relaxed);
        }
        // Publishes the words: a collector that reads this number sees them.
        self.written.store(written + 1, Ordering::Release);
        events as usize + 1
    }

    /// Removes every event. Only one collector at a time may call it.
    pub(super) fn drain(&self, mut take: impl FnMut([u64; WORDS])) {
        let written = self.written.load(Ordering::Acquire);
        let read = self.read.load(Ordering::Relaxed);
        for number in read..written {
            let slot = self.slot(number);
            take(std::array::from_fn(|word| slot[word].load(Ordering::Relaxed)));
        }
        // Frees the slots: the writer overwrites them only after it reads this number.
        self.read.store(written, Ordering::Release);
    }

    /// Number of events dropped since [`take_dropped`](Ring::take_dropped), and the time of the latest one in ns.
    pub(super) fn dropped(&self) -> (u64, u64) {
        let count = self.dropped.load(Ordering::Acquire);
        (count, self.dropped_at.load(Ordering::Relaxed))
    }

    /// As [`dropped`](Ring::dropped); counts from 0 again.
    pub(super) fn take_dropped(&self) -> (u64, u64) {
        let count = self.dropped.swap(0, Ordering::Acquire);
        (count, self.dropped_at.load(Ordering::Relaxed))
    }

    /// Whether the writer should drain its ring, which now holds that many events: when it becomes
    /// half full, and again after each further eighth in case the store was locked.
    #[inline]
    pub(super) fn should_drain(&self, events: usize) -> bool {
        let slots = self.slots.len();
        events * 2 >= slots && events & ((slots / 8).max(1) - 1) == 0
    }

    /// Marks the writer as dropped. Only the writer may call it.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether the writer was dropped. A drain after this returned true removes the last events.
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

    /// One thread writes more events than fit and closes the ring while the other drains it.
    #[test]
    fn every_event_is_read_whole_and_once_or_counted_as_dropped() {
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
                    assert_eq!(
                        seen.len() as u64 + ring.dropped().0,
                        3,
                        "every event is read or counted"
                    );
                }
            }
            writer.join().expect("the writer ends");
            ring.drain(|words| seen.push(words));
            assert_eq!(seen.len() as u64 + ring.dropped().0, 3);
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
        let counts: Vec<usize> = (0..6).map(|number| ring.push(&[number; WORDS])).collect();
        assert_eq!(counts, [1, 2, 3, 4, 4, 4], "rounded up to a power of two");
        let mut seen = Vec::new();
        ring.drain(|words| seen.push(words[0]));
        assert_eq!((seen, ring.take_dropped()), (vec![0, 1, 2, 3], (2, 5)));
        assert_eq!(ring.dropped().0, 0, "they are counted once");
        assert_eq!(ring.push(&[6; WORDS]), 1, "there is room again");
    }
}
