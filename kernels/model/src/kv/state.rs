//! The states of layers, beside keys and values.

use super::KvLayout;

/// What a layer keeps of the rows before, beside keys and values: as many values however long the sequence is.
///
/// Each page has room for the state after the latest of its rows. A full page thus has the state at its end, where another sequence
/// that begins with the same tokens goes on; and whatever shares, copies, keeps or frees a page does so with its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateLayout {
    /// Values in f32.
    pub values: usize,
}

impl StateLayout {
    /// Bytes of the state.
    pub const fn bytes(self) -> usize {
        self.values * size_of::<f32>()
    }
}

impl KvLayout {
    /// Bytes of the states of a page.
    pub fn state_bytes(&self) -> usize {
        self.states.iter().map(|state| state.bytes()).sum()
    }
}
