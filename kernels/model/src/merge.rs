//! Putting the parts of a cut stage together.

use crate::device::{Batch, Tensor, TensorSet};
use crate::graph::{Graph, Node, ValueId};
use crate::op::Op;
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
    /// Values that the stage has read: by the routes among them parts are put together that are cut by experts.
    pub read: &'a TensorSet,
    /// Where the whole values lie.
    pub slots: &'a SlotPool,
}

impl Merge<'_> {
    /// Copies every part's rows and features to their place in whole values. Of parts that are cut by experts the largest stays, and the
    /// slots of the others are copied into it. Returns these, and
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
            if parts.iter().any(|(part, _)| part.experts.is_some()) {
                let (value, copied) = self.by_expert(id, &mut parts)?;
                whole.put(id, value);
                bytes += copied;
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

    /// Puts a value together whose parts are cut by experts. Returns it, and the bytes that were read and written for it.
    fn by_expert(
        &self,
        id: ValueId,
        parts: &mut [(&Part, TensorSet)],
    ) -> Result<(Tensor, u64), ValueId> {
        let Node { op: Op::Experts(op), inputs, .. } = &self.graph.nodes()[id.0] else {
            return Err(id);
        };
        let spec = self.graph.value(id);
        let (width, rows) = (spec.width / op.used, Part::WHOLE.rows_of(spec, self.batch).len());
        let experts = |part: &Part| part.experts_of(op.count);
        let largest = (0..parts.len()).max_by_key(|at| experts(parts[*at].0).len()).ok_or(id)?;
        let mut whole = parts[largest].1.take(id).ok_or(id)?;
        let route = inputs.get(1).and_then(|route| self.read.get(*route)).ok_or(id)?;
        let route = route.host().filter(|route| route.len() == rows * 2 * op.used).ok_or(id)?;
        let to = whole.host_mut().filter(|to| to.len() == rows * spec.width).ok_or(id)?;
        let mut copied = 0;
        for (at, (part, tensors)) in parts.iter_mut().enumerate() {
            if at == largest {
                continue;
            }
            let (own, from) = (experts(part), tensors.take(id).ok_or(id)?);
            let from = from.host().filter(|from| from.len() == to.len()).ok_or(id)?;
            let numbers = route.chunks_exact(2 * op.used).flat_map(|row| &row[..op.used]);
            for (slot, number) in numbers.enumerate() {
                if own.contains(&op.expert_of(*number)) {
                    to[slot * width..][..width].copy_from_slice(&from[slot * width..][..width]);
                    copied += width;
                }
            }
        }
        Ok((whole, (2 * copied * size_of::<f32>()) as u64))
    }
}
