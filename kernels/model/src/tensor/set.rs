//! The values that cross a border.

use super::matrix::Tensor;
use crate::graph::ValueId;

/// Values that cross the border between two stages.
#[derive(Debug, Default)]
pub struct TensorSet {
    tensors: Vec<(ValueId, Tensor)>,
}

impl TensorSet {
    /// Adds a value; one with the same id is replaced.
    pub fn put(&mut self, id: ValueId, tensor: Tensor) {
        self.tensors.retain(|(other, _)| *other != id);
        self.tensors.push((id, tensor));
    }

    /// A value, if it is here.
    pub fn get(&self, id: ValueId) -> Option<&Tensor> {
        self.tensors.iter().find(|(other, _)| *other == id).map(|(_, t)| t)
    }

    /// A value, to be changed.
    pub fn get_mut(&mut self, id: ValueId) -> Option<&mut Tensor> {
        self.tensors.iter_mut().find(|(other, _)| *other == id).map(|(_, t)| t)
    }

    /// Takes a value out.
    pub fn take(&mut self, id: ValueId) -> Option<Tensor> {
        let at = self.tensors.iter().position(|(other, _)| *other == id)?;
        Some(self.tensors.swap_remove(at).1)
    }

    /// Drops every value that is not among `ids`.
    pub fn keep(&mut self, ids: &[ValueId]) {
        self.tensors.retain(|(id, _)| ids.contains(id));
    }

    /// The values.
    pub fn iter(&self) -> impl Iterator<Item = (ValueId, &Tensor)> {
        self.tensors.iter().map(|(id, tensor)| (*id, tensor))
    }

    /// Adds all values of another set.
    pub fn append(&mut self, other: TensorSet) {
        other.tensors.into_iter().for_each(|(id, tensor)| self.put(id, tensor));
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Bytes of all values.
    pub fn bytes(&self) -> u64 {
        self.tensors.iter().map(|(_, tensor)| tensor.bytes()).sum()
    }
}
