//! Formats in which weights are stored and used for computation.

use super::{Graph, WeightId};
use crate::quant::DType;
use crate::requant::Requant;

impl Graph {
    /// Format that a weight is requantised to when it is packed, if any.
    pub fn requant(&self, id: WeightId) -> Option<Requant> {
        self.requant.get(&id.0).map(|(format, _)| *format)
    }

    /// Format of a weight in the file.
    pub fn stored(&self, id: WeightId) -> DType {
        self.requant.get(&id.0).map_or(self.weights[id.0].dtype, |(_, stored)| *stored)
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
