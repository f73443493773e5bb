//! The ranges of a text that are already tokens.

use std::collections::BTreeMap;

/// Ranges that do not overlap, each with its token.
pub(super) struct Taken {
    /// End and token of each range, by its start.
    ranges: BTreeMap<usize, (usize, u32)>,
    /// Length of the text in bytes.
    length: usize,
}

impl Taken {
    /// No ranges of a text of `length` bytes.
    pub(super) fn new(length: usize) -> Self {
        Self { ranges: BTreeMap::new(), length }
    }

    /// Start of the free range that ends at `end`; `None` if the byte before `end` is taken.
    pub(super) fn free_before(&self, end: usize) -> Option<usize> {
        match self.ranges.range(..end).next_back() {
            None => Some(0),
            Some((_, (taken_until, _))) => (*taken_until < end).then_some(*taken_until),
        }
    }

    /// End of the free range that starts at `start`.
    pub(super) fn free_until(&self, start: usize) -> usize {
        self.ranges.range(start..).next().map_or(self.length, |(start, _)| *start)
    }

    /// Takes a free range.
    pub(super) fn insert(&mut self, start: usize, end: usize, id: u32) {
        self.ranges.insert(start, (end, id));
    }

    /// Start, end and token of every range, ascending.
    pub(super) fn in_order(self) -> impl Iterator<Item = (usize, usize, u32)> {
        self.ranges.into_iter().map(|(start, (end, id))| (start, end, id))
    }
}
