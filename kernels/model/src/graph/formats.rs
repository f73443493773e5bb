//! Formats in which weights are stored and used for computation, and their tensors in a file.

use super::{Graph, WeightId};
use crate::formats::DType;
use crate::requant::Requant;
use crate::weights::{Slices, WeightFile, WeightTensor};
use std::collections::BTreeMap;

impl Graph {
    /// Format that a weight is requantised to when it is packed, if any.
    pub fn requant(&self, id: WeightId) -> Option<Requant> {
        self.requant.get(&id.0).map(|(format, _)| *format)
    }

    /// Format of a weight in the file.
    pub fn stored(&self, id: WeightId) -> DType {
        self.requant.get(&id.0).map_or(self.weights[id.0].dtype, |(_, stored)| *stored)
    }

    /// The tensor of a weight, cut to the part that the graph uses; `None` if the file lacks it.
    pub fn tensor(&self, id: WeightId, file: &WeightFile) -> Option<WeightTensor> {
        let tensor = file.tensor(&self.weights[id.0].name)?;
        Some(match self.slices.get(&id.0) {
            Some(slices) => tensor.sliced(*slices),
            None => tensor,
        })
    }

    /// The parts of tensors that the graph uses, by weight id; all other weights are whole tensors.
    pub fn slices(&self) -> &BTreeMap<usize, Slices> {
        &self.slices
    }

    /// Names of the matrices that are requantised, and the forms that they get, in graph order.
    pub fn requantised(&self) -> impl Iterator<Item = (&str, Requant)> {
        let all = self.requant.iter();
        all.map(|(id, (form, _))| (&*self.weights[*id].name, *form))
    }

    /// Requantises a weight to `format`; `None` restores the stored format.
    pub(crate) fn set_requant(&mut self, id: WeightId, format: Option<Requant>) {
        let stored = self.stored(id);
        self.weights[id.0].dtype = format.map_or(stored, Requant::dtype);
        match format {
            Some(format) => self.requant.insert(id.0, (format, stored)),
            None => self.requant.remove(&id.0),
        };
    }
}
