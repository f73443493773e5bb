//! Putting the parts of a cut stage together.

use crate::device::{Batch, Tensor, TensorSet};
use crate::graph::{Graph, ValueId};
use crate::part::Part;
use crate::tensor::SlotPool;

/// Arguments of a merge.
#[derive(Clone, Copy, Debug)]
pub struct Merge<'a> {
    /// The model's ops.
    pub graph: &'a Graph,
    /// All rows of the chunk.
    pub batch: &'a Batch,
    /// Values that the stage writes for later ones.
    pub writes: &'a [ValueId],
    /// Where the whole values lie.
    pub slots: &'a SlotPool,
}

impl Merge<'_> {
    /// Copies every part's rows and features to their place in whole values. Returns these, and
    /// the bytes that were read and written for it. A value that a single part wrote whole is
    /// handed on as it is.
    ///
    /// # Errors
    /// The value that a part has not written, or not with its rows and features.
    pub fn run(&self, parts: Vec<(&Part, TensorSet)>) -> Result<(TensorSet, u64), ValueId> {
        let mut parts = parts;
        let mut whole = TensorSet::default();
        let mut bytes = 0;
        for &id in self.writes {
            if let [(part, tensors)] = &mut parts[..]
                && part.is_whole()
            {
                whole.put(id, tensors.take(id).ok_or(id)?);
                continue;
            }
            let spec = self.graph.value(id);
            let rows = Part::WHOLE.rows_of(spec, self.batch).len();
            let mut data = self.slots.take(rows * spec.width);
            let mut copied = 0;
            for (part, tensors) in &mut parts {
                let from = tensors.take(id).ok_or(id)?;
                let rows = part.rows_of(spec, self.batch);
                let features = part.features.of_width(spec.width);
                let values = from.host().ok_or(id)?;
                if from.width != features.len() || values.len() != rows.len() * features.len() {
                    return Err(id);
                }
                copied += values.len();
                bytes += 2 * from.bytes();
                if features.is_empty() {
                    continue;
                }
                for (row, from) in rows.zip(values.chunks_exact(features.len())) {
                    data[row * spec.width..][features.clone()].copy_from_slice(from);
                }
            }
            if copied != data.len() {
                return Err(id);
            }
            whole.put(id, Tensor::new(spec.width, data));
        }
        Ok((whole, bytes))
    }
}
