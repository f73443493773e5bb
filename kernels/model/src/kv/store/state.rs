//! The states of one layer.

use super::KvStore;
use super::paged::Paged;
use crate::device::BatchSpan;
use crate::kv::StateId;
use crate::sync::{MutexGuard, lock};
use std::ops::Range;

/// The states of one layer in all places, locked.
#[derive(Debug)]
pub struct StateLayer<'a> {
    values: usize,
    data: MutexGuard<'a, Paged<f32>>,
}

impl KvStore {
    /// Locks a layer's states; waits while another thread holds the lock.
    ///
    /// # Panics
    /// If there is no such state.
    pub fn state(&self, state: usize) -> StateLayer<'_> {
        StateLayer { values: self.layout.states[state].values, data: lock(&self.states[state]) }
    }

    /// Bytes of the states at a place, one layer after another, of which there are [`KvLayout::state_bytes`](crate::kv::KvLayout).
    pub fn read_state(&self, place: StateId) -> Vec<u8> {
        let layers = (0..self.states.len()).map(|layer| self.state(layer));
        layers.flat_map(|layer| bytemuck::cast_slice(layer.at(place)).to_vec()).collect()
    }

    /// Fills the states at a place with bytes that [`read_state`](KvStore::read_state) has returned.
    ///
    /// # Panics
    /// If there are fewer bytes.
    pub fn write_state(&self, place: StateId, from: &[u8]) {
        let mut rest = from;
        for layer in 0..self.states.len() {
            let mut layer = self.state(layer);
            let to: &mut [u8] = bytemuck::cast_slice_mut(layer.at_mut(place));
            let (from, others) = rest.split_at(to.len());
            to.copy_from_slice(from);
            rest = others;
        }
    }
}

impl StateLayer<'_> {
    /// The state at a place.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn at(&self, place: StateId) -> &[f32] {
        &self.data[self.range(place)]
    }

    /// The same, to write to.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn at_mut(&mut self, place: StateId) -> &mut [f32] {
        let range = self.range(place);
        &mut self.data[range]
    }

    /// The state before the first row of a span; `None` at the beginning of its sequence.
    pub fn before(&self, span: &BatchSpan) -> Option<&[f32]> {
        span.states.from.map(|place| self.at(place))
    }

    /// Makes a state of the last rows, oldest first, at each place where the span keeps one. `x` are its rows `[rows][width]`. Where a
    /// sequence has fewer rows, those before it are 0.
    ///
    /// # Panics
    /// If the state is not of whole rows.
    pub fn keep_rows(&mut self, span: &BatchSpan, x: &[f32], width: usize) {
        assert!(self.values.is_multiple_of(width), "{} values in rows of {width}", self.values);
        let kept = self.values / width;
        let states = &span.states;
        let keep = states.keep.iter().map(|(end, place)| (end - span.start, *place));
        // Last the place of the end, which may be the one with the state before the rows.
        for (new, place) in keep.chain([(x.len() / width, states.to)]) {
            let to = self.range(place);
            let old = kept.saturating_sub(new);
            match states.from {
                None => self.data[to.start..][..old * width].fill(0.0),
                Some(from) => {
                    let from = self.range(from);
                    self.data.copy_within(from.end - old * width..from.end, to.start);
                }
            }
            let last = &x[(new + old - kept) * width..new * width];
            self.data[to.start + old * width..to.end].copy_from_slice(last);
        }
    }

    /// The states at all places, in their order.
    pub fn all_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// Values of a state.
    pub fn values(&self) -> usize {
        self.values
    }

    fn range(&self, place: StateId) -> Range<usize> {
        place as usize * self.values..(place as usize + 1) * self.values
    }
}
