//! The states of layers, beside keys and values.

use super::KvLayout;

/// Place of the states of a sequence in all layers that have one.
pub type StateId = u32;

/// What a layer keeps of the rows before, beside keys and values: as many values however long the sequence is.
///
/// A sequence has a place of its own for its states, which each of its rows changes. What they were after some row is kept in another
/// place where a sequence that begins with the same tokens may go on.
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
    /// Bytes of the states of a sequence in all layers.
    pub fn state_bytes(&self) -> usize {
        self.states.iter().map(|state| state.bytes()).sum()
    }
}

/// Size of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvSize {
    /// Pages of keys and values.
    pub pages: u32,
    /// Places of states. They take no memory if no layer has a state.
    pub states: u32,
}

impl KvSize {
    /// Bytes of the cache; `None` if they do not fit into a number.
    pub fn bytes(self, layout: &KvLayout) -> Option<usize> {
        let pages = layout.page_bytes().checked_mul(self.pages as usize)?;
        layout.state_bytes().checked_mul(self.states as usize)?.checked_add(pages)
    }
}

/// So many pages, and as many places of states.
impl From<u32> for KvSize {
    fn from(pages: u32) -> KvSize {
        KvSize { pages, states: pages }
    }
}
