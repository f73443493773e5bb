//! How much memory packed weights take, and of whom.

use super::{Weights, shared};
use crate::packed::memory::Memory;
use lapwing_model::weights::WeightFile;
use std::sync::{Arc, Weak};

/// Bytes of packed weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackedUse {
    /// In memory of this process alone.
    pub own_bytes: usize,
    /// In mapped files: memory that all processes share which map them, and which the system takes back when it needs it, as it
    /// can read the file again. Only the parts that were used are in memory.
    pub mapped_bytes: usize,
}

/// The packed weights of open files that devices use. It does not keep them.
#[derive(Clone, Debug, Default)]
pub struct PackedUsers(Vec<Weak<Weights>>);

/// The packed weights of `files` that devices of this process use now.
pub fn packed_users(files: &[&WeightFile]) -> PackedUsers {
    let of = |file: &&WeightFile| shared::with(file, |shared| shared.weights.clone());
    PackedUsers(files.iter().flat_map(of).collect())
}

impl PackedUsers {
    /// Their bytes at this moment: weights that lost their file are copies from then on, and those of devices that have ended are none.
    pub fn bytes(&self) -> PackedUse {
        let users: Vec<Arc<Weights>> = self.weights();
        let mut of = PackedUse::default();
        for memory in memories(&users) {
            match memory.mapped() {
                Some(mapped) if !mapped.is_copied() => of.mapped_bytes += memory.len(),
                _ => of.own_bytes += memory.len(),
            }
        }
        of
    }

    pub(super) fn weights(&self) -> Vec<Arc<Weights>> {
        self.0.iter().filter_map(Weak::upgrade).collect()
    }
}

/// The memories of some weights, each once.
pub(super) fn memories(of: &[Arc<Weights>]) -> Vec<&Arc<Memory>> {
    let mut memories: Vec<&Arc<Memory>> = Vec::new();
    for weights in of {
        for matrix in weights.weights.iter().filter_map(|weight| weight.packed.as_ref()) {
            if !memories.iter().any(|memory| Arc::ptr_eq(memory, matrix.memory())) {
                memories.push(matrix.memory());
            }
        }
    }
    memories
}
