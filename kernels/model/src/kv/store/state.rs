//! The states of one layer.

use super::KvStore;
use super::copies::{Copies, KvCopyId, KvPart};
use super::paged::Paged;
use crate::device::{BatchSpan, DeviceError, MappedMemory, SpanStates};
use crate::kv::StateId;
use crate::sync::{MutexGuard, lock};
use std::ops::Range;

/// The states of one layer in all places, locked.
#[derive(Debug)]
pub struct StateLayer<'a> {
    values: usize,
    state: usize,
    copies: &'a Copies,
    data: MutexGuard<'a, Paged<f32>>,
}

impl KvStore {
    /// Locks a layer's states; waits while another thread holds the lock.
    ///
    /// # Panics
    /// If there is no such state.
    pub fn state(&self, state: usize) -> StateLayer<'_> {
        let values = self.layout.states[state].values;
        StateLayer { values, state, copies: &self.copies, data: lock(&self.states[state]) }
    }

    /// Bytes of the states at a place, one layer after another, of which there are [`KvLayout::state_bytes`](crate::kv::KvLayout).
    ///
    /// # Errors
    /// [`DeviceError`] of a device that alone holds a state and has failed.
    pub fn read_state(&self, place: StateId) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = Vec::with_capacity(self.layout.state_bytes());
        for state in 0..self.states.len() {
            let mut layer = self.state(state);
            let holder = self.copies.claim_read(KvPart::States(state), place);
            holder.map_or(Ok(()), |holder| layer.fetch(place, holder))?;
            bytes.extend_from_slice(bytemuck::cast_slice(layer.at(place)));
        }
        Ok(bytes)
    }

    /// Fills the states at a place with bytes that [`read_state`](KvStore::read_state) has returned.
    ///
    /// # Panics
    /// If there are fewer bytes.
    pub fn write_state(&self, place: StateId, from: &[u8]) {
        let mut rest = from;
        for state in 0..self.states.len() {
            let mut layer = self.state(state);
            self.copies.claim_write(KvPart::States(state), place);
            let to: &mut [u8] = bytemuck::cast_slice_mut(layer.at_mut(place));
            let (from, others) = rest.split_at(to.len());
            to.copy_from_slice(from);
            rest = others;
        }
    }

    /// Applies `find` to the shared memory of a state; `None` for one in host memory.
    pub fn memory_of_state<T>(
        &self,
        state: usize,
        find: impl FnOnce(&dyn MappedMemory) -> Option<T>,
    ) -> Option<T> {
        find(lock(&self.states[state]).mapped()?)
    }

    /// Prepares the states of a span for a device that reads and writes the host's in place.
    ///
    /// # Errors
    /// [`DeviceError`] of another device that alone holds one.
    pub fn bring_states_to_shared(
        &self,
        state: usize,
        states: &SpanStates,
    ) -> Result<(), DeviceError> {
        // Only a device with copies takes states away from the host.
        match self.copies.is_alone() {
            true => Ok(()),
            false => self.state(state).bring_to_host(states),
        }
    }

    /// Prepares the states of a span for a device with copies of them, which reads and writes them: `upload` receives the one
    /// that the device lacks.
    ///
    /// # Errors
    /// [`DeviceError`] of another device that holds it.
    pub fn bring_states_to_device(
        &self,
        state: usize,
        copy: KvCopyId,
        states: &SpanStates,
        upload: impl FnOnce(StateId, &[u8]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let Some((place, from)) = self.copies.claim_states(state, copy, states) else {
            return Ok(());
        };
        let mut layer = self.state(state);
        self.copies.count_to_device(1, self.layout.states[state].bytes());
        if from != KvCopyId::HOST {
            layer.fetch(place, from)?;
        }
        upload(place, bytemuck::cast_slice(layer.at(place)))
    }
}

impl StateLayer<'_> {
    /// Prepares the states of a span for the host, which reads and writes them: copies the one that only a device holds.
    ///
    /// # Errors
    /// [`DeviceError`] of that device.
    pub fn bring_to_host(&mut self, states: &SpanStates) -> Result<(), DeviceError> {
        if self.copies.is_alone() {
            return Ok(());
        }
        match self.copies.claim_states(self.state, KvCopyId::HOST, states) {
            Some((place, from)) => self.fetch(place, from),
            None => Ok(()),
        }
    }

    /// Copies the state at a place from a device.
    fn fetch(&mut self, place: StateId, from: KvCopyId) -> Result<(), DeviceError> {
        let (part, range) = (KvPart::States(self.state), self.range(place));
        let to = bytemuck::cast_slice_mut(&mut self.data[range]);
        self.copies.fetch(part, place, from, to)
    }

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
