//! Store of the events collected from the rings.

use std::collections::VecDeque;
use std::sync::Arc;

use super::RecorderConfig;
use super::losses::Losses;
use super::ring::Ring;
use crate::event::{Event, WORDS};

/// An event in the form it has in rings and store.
type Words = [u64; WORDS];

/// Events per block. A block is shared and freed as a whole.
const BLOCK: usize = 4096;

/// All rings, and the events drained from them.
#[derive(Default)]
pub(super) struct Store {
    rings: Vec<Arc<Ring>>,
    events: Blocks,
    /// Events dropped by the store and by rings, as far as they are collected.
    losses: Losses,
}

impl Store {
    pub(super) fn add(&mut self, ring: Arc<Ring>) {
        self.rings.push(ring);
    }

    /// Drains every ring and frees those whose writer was dropped.
    pub(super) fn collect(&mut self, config: &RecorderConfig) {
        self.empty(config, true);
    }

    /// Drains and frees only the rings whose writer was dropped.
    pub(super) fn collect_closed(&mut self, config: &RecorderConfig) {
        self.empty(config, false);
    }

    /// Drains every ring (`all`), or only those whose writer was dropped, and frees the latter.
    fn empty(&mut self, config: &RecorderConfig, all: bool) {
        let Store { rings, events, losses } = self;
        rings.retain(|ring| {
            // Checked before the ring is drained, so that the last events of a writer are
            // collected.
            let closed = ring.is_closed();
            if closed || all {
                events.fill(ring, config, losses);
            }
            !closed
        });
    }

    /// Drains one ring.
    pub(super) fn collect_one(&mut self, ring: &Ring, config: &RecorderConfig) {
        self.events.fill(ring, config, &mut self.losses);
    }

    /// Number of events dropped so far.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped_since(0)
    }

    /// Number of events dropped so far that were of this time in ns or later, as [`Losses::since`] counts them.
    pub(super) fn dropped_since(&self, time: u64) -> u64 {
        let uncollected = self.rings.iter().map(|ring| ring.dropped());
        let uncollected = uncollected.filter(|(_, latest)| *latest >= time);
        self.losses.since(time) + uncollected.map(|(count, _)| count).sum::<u64>()
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn rings(&self) -> usize {
        self.rings.len()
    }

    /// The events collected so far, without copying them.
    pub(super) fn snapshot(&self) -> Blocks {
        self.events.clone()
    }

    /// Removes and returns the events.
    pub(super) fn take(&mut self) -> Blocks {
        std::mem::take(&mut self.events)
    }
}

/// A queue of events in blocks; events are never moved.
#[derive(Clone, Default)]
pub(super) struct Blocks {
    full: VecDeque<Arc<Vec<Words>>>,
    /// Events removed from the front block, which is freed as a whole once all are removed.
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

    /// Drains a ring into the queue, and counts the events that were dropped for lack of room in the ring or here.
    fn fill(&mut self, ring: &Ring, config: &RecorderConfig, losses: &mut Losses) {
        let (count, latest) = ring.take_dropped();
        losses.add(count, latest);
        ring.drain(|words| {
            if self.len() >= config.events_max {
                if !config.keep_latest || config.events_max == 0 {
                    losses.add(1, words[0]);
                    return;
                }
                losses.add(1, self.pop().map_or(0, |oldest| oldest[0]));
            }
            self.push(words);
        });
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
    fn pop(&mut self) -> Option<Words> {
        let first = self.full.front().map_or(&self.last[..], |block| &block[..]);
        let first = first.get(self.gone).copied();
        self.gone += 1;
        // The last block is never full, so an exhausted block is a full one.
        if self.gone == BLOCK {
            self.full.pop_front();
            self.gone = 0;
        }
        first
    }
}
