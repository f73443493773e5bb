//! One writer's ring: written by one thread, emptied by another, without a lock.

use crate::event::WORDS;
use crate::sync::{AtomicU64, Ordering};

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

    /// Events that fit.
    pub(super) fn capacity(&self) -> usize {
        self.slots.len()
    }
}
