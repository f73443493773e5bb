//! Requests that wait, in order of arrival.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use lapwing_traces::Nanos;
use lapwing_traces::event::StallCause;

use super::running::Sequence;
use crate::sequence::SequenceId;

/// Waiting requests by their numbers. There may be many: what happens in each step looks at few of them.
#[derive(Default)]
pub(super) struct Waiting {
    sequences: VecDeque<Box<Sequence>>,
    counts: Counts,
    /// Those whose stall is not recorded yet.
    new: Vec<SequenceId>,
}

/// What is known of all of them.
#[derive(Clone, Copy, Default)]
struct Counts {
    /// How many are background work.
    background: usize,
    /// How many of their callers may drop the stream.
    cancellable: usize,
}

impl Counts {
    fn add(&mut self, sequence: &Sequence) {
        self.background += usize::from(sequence.entry.urgency().is_background());
        self.cancellable += usize::from(sequence.sink.may_close());
    }

    fn remove(&mut self, sequence: &Sequence) {
        self.background -= usize::from(sequence.entry.urgency().is_background());
        self.cancellable -= usize::from(sequence.sink.may_close());
    }
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.sequences.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Sequence> {
        self.sequences.iter().map(|waiting| &**waiting)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sequence> {
        self.sequences.iter_mut().map(|waiting| &mut **waiting)
    }

    /// Those that are background work, whether it is their turn or not.
    pub(super) fn background(&self) -> impl Iterator<Item = &Sequence> {
        let all = if self.counts.background > 0 { self.sequences.len() } else { 0 };
        self.iter().take(all).filter(|waiting| waiting.entry.urgency().is_background())
    }

    /// Adds a request in order of its number.
    pub(super) fn push(&mut self, sequence: Sequence) {
        self.counts.add(&sequence);
        self.new.push(sequence.id);
        let place = self.sequences.partition_point(|before| before.id < sequence.id);
        self.sequences.insert(place, Box::new(sequence));
    }

    /// Takes the request at a place; the others move up.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn remove(&mut self, at: usize) -> Sequence {
        let sequence = *self.sequences.remove(at).expect("a waiting request is at its place");
        self.counts.remove(&sequence);
        sequence
    }

    /// Takes all of them.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Sequence> + use<> {
        std::mem::take(self).sequences.into_iter().map(|waiting| *waiting)
    }

    /// Drops those that are cancelled, as `drops` says of each that its caller may cancel.
    pub(super) fn drop_cancelled(&mut self, mut drops: impl FnMut(&Sequence) -> bool) {
        if self.counts.cancellable == 0 {
            return;
        }
        let Waiting { sequences, counts, .. } = self;
        sequences.retain(|waiting| {
            let is_dropped = drops(waiting);
            if is_dropped {
                counts.remove(waiting);
            }
            !is_dropped
        });
    }

    /// Records that those which came since this was last called wait for pages, or for a place among the running ones.
    pub(super) fn record_stalls(&mut self, now: Nanos) {
        for id in std::mem::take(&mut self.new) {
            let found = self.sequences.binary_search_by_key(&id, |waiting| waiting.id);
            if let Ok(at) = found {
                self.sequences[at].stall.get_or_insert((StallCause::SlotPool, now));
            }
        }
    }
}

impl Index<usize> for Waiting {
    type Output = Sequence;

    fn index(&self, at: usize) -> &Sequence {
        &self.sequences[at]
    }
}

impl IndexMut<usize> for Waiting {
    fn index_mut(&mut self, at: usize) -> &mut Sequence {
        &mut self.sequences[at]
    }
}
