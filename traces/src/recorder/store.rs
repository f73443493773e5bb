//! What the collector took out of the rings.

use std::collections::VecDeque;
use std::sync::Arc;

use super::RecorderConfig;
use super::ring::Ring;
use crate::event::{Event, WORDS};

/// An event as it lies in rings and store.
type Words = [u64; WORDS];

/// Events that are moved, and later let go, together.
const BLOCK: usize = 4096;

/// All rings, and what they held.
#[derive(Default)]
pub(super) struct Store {
    rings: Vec<Arc<Ring>>,
    events: Blocks,
    /// Dropped here, and by rings that are gone.
    dropped: u64,
}

impl Store {
    pub(super) fn add(&mut self, ring: Arc<Ring>) {
        self.rings.push(ring);
    }

    /// Empties every ring, and forgets those whose writer is gone.
    pub(super) fn collect(&mut self, config: &RecorderConfig) {
        self.empty(config, true);
    }

    /// Empties and forgets the rings whose writer is gone: their memory is free.
    pub(super) fn collect_closed(&mut self, config: &RecorderConfig) {
        self.empty(config, false);
    }

    /// Empties every ring (`all`) or those whose writer is gone, and forgets the latter.
    fn empty(&mut self, config: &RecorderConfig, all: bool) {
        let Store { rings, events, dropped } = self;
        rings.retain(|ring| {
            // Looked at before the ring is emptied: what a writer does last is collected.
            let closed = ring.is_closed();
            if closed || all {
                *dropped += events.fill(ring, config);
            }
            if closed {
                *dropped += ring.dropped();
            }
            !closed
        });
    }

    /// Empties one ring.
    pub(super) fn collect_one(&mut self, ring: &Ring, config: &RecorderConfig) {
        self.dropped += self.events.fill(ring, config);
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped + self.rings.iter().map(|ring| ring.dropped()).sum::<u64>()
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn rings(&self) -> usize {
        self.rings.len()
    }

    /// The events collected so far; cheap, whatever their number.
    pub(super) fn snapshot(&self) -> Blocks {
        self.events.clone()
    }

    /// Takes the events out.
    pub(super) fn take(&mut self) -> Blocks {
        std::mem::take(&mut self.events)
    }
}

/// A queue of events that never moves what is in it.
#[derive(Clone, Default)]
pub(super) struct Blocks {
    full: VecDeque<Arc<Vec<Words>>>,
    /// Events at the front that are gone: less than a block, whose memory goes as a whole.
    gone: usize,
    last: Vec<Words>,
}

impl Blocks {
    pub(super) fn len(&self) -> usize {
        self.full.len() * BLOCK + self.last.len() - self.gone
    }

    pub(super) fn events(&self) -> impl Iterator<Item = Event> {
        let full = self.full.iter().flat_map(|block| block.iter());
        full.chain(&self.last).skip(self.gone).filter_map(Event::from_words)
    }

    /// Takes over what is in a ring; returns how many events found no room.
    fn fill(&mut self, ring: &Ring, config: &RecorderConfig) -> u64 {
        let mut dropped = 0;
        ring.drain(|words| {
            if self.len() >= config.events_max {
                dropped += 1;
                if !config.keep_latest || config.events_max == 0 {
                    return;
                }
                self.pop();
            }
            self.push(words);
        });
        dropped
    }

    fn push(&mut self, words: Words) {
        if self.last.capacity() == 0 {
            self.last.reserve_exact(BLOCK);
        }
        self.last.push(words);
        if self.last.len() == BLOCK {
            self.full.push_back(Arc::new(std::mem::take(&mut self.last)));
        }
    }

    /// Removes the first event.
    fn pop(&mut self) {
        self.gone += 1;
        // The last block is never full: what is gone here is a full one.
        if self.gone == BLOCK {
            self.full.pop_front();
            self.gone = 0;
        }
    }
}
