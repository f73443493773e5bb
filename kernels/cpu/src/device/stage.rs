//! Inputs and outputs of a stage's nodes.

use std::borrow::Cow;

use super::model::BoundModel;
use crate::packed::OutputChannels;
use lapwing_model::device::{Batch, DeviceError, Slot, TensorSet};
use lapwing_model::graph::{Node, ValueId};
use lapwing_model::part::Part;

/// A running part of a stage.
#[derive(Clone, Copy)]
pub(super) struct Stage<'a> {
    pub(super) model: &'a BoundModel,
    pub(super) part: &'a Part,
    pub(super) batch: &'a Batch,
    pub(super) inputs: &'a TensorSet,
    /// First node of the stage, and the values written so far. Value ids are node ids.
    pub(super) written: (usize, &'a [Option<Slot>]),
}

impl<'a> Stage<'a> {
    /// Number of the part's rows of a value.
    pub(super) fn rows(&self, id: ValueId) -> usize {
        self.part.rows_of(self.model.graph.value(id), self.batch).len()
    }

    /// Memory for the part's rows and columns of a node's output.
    pub(super) fn output(&self, node: &Node) -> Slot {
        let width = self.model.graph.value(node.output).width;
        let features = self.part.features.of_width(width);
        self.model.slots.take(self.rows(node.output) * features.len())
    }

    /// The part's rows of an input, all columns.
    pub(super) fn whole(&self, node: &Node, index: usize) -> Result<&'a [f32], DeviceError> {
        let (values, is_part) = self.input(node, index)?;
        if is_part && !self.part.features.is_whole() {
            return Err(self.unsupported(node, "a value of which only some features are here"));
        }
        Ok(values)
    }

    /// The part's rows of an input, the part's columns.
    pub(super) fn columns(&self, node: &Node, index: usize) -> Result<Cow<'a, [f32]>, DeviceError> {
        let (values, is_part) = self.input(node, index)?;
        if is_part || self.part.features.is_whole() {
            return Ok(Cow::Borrowed(values));
        }
        let width = self.model.graph.value(node.inputs[index]).width;
        let features = self.part.features.of_width(width);
        let rows = values.chunks_exact(width).flat_map(|row| &row[features.clone()]);
        Ok(Cow::Owned(rows.copied().collect()))
    }

    /// The part's rows of an input, and whether it has only the part's columns, since this stage
    /// wrote it.
    fn input(&self, node: &Node, index: usize) -> Result<(&'a [f32], bool), DeviceError> {
        let id = node.inputs[index];
        let missing = DeviceError::MissingValue { value: id.0, role: node.role };
        let (first, written) = self.written;
        if let Some(at) = id.0.checked_sub(first) {
            let slot = written.get(at).and_then(Option::as_ref).ok_or(missing)?;
            return Ok((slot, true));
        }
        let tensor = self.inputs.get(id).ok_or(missing)?;
        let rows = self.part.rows_of(self.model.graph.value(id), self.batch);
        let values = tensor.host().ok_or(DeviceError::OtherMemory { value: id.0 })?;
        Ok((&values[rows.start * tensor.width..rows.end * tensor.width], false))
    }

    /// The part's channels of a matmul's matrix and bias.
    pub(super) fn channels(&self, node: usize) -> (OutputChannels<'a>, Option<&'a [f32]>) {
        let (weight, bias) = self.model.context().matmul(node);
        let features = self.part.features.of_width(weight.rows());
        (weight.channels(features.clone()), bias.map(|bias| &bias[features]))
    }

    pub(super) fn unsupported(&self, node: &Node, what: &str) -> DeviceError {
        let Node { op, role, .. } = node;
        DeviceError::Unsupported {
            device: self.model.name.clone(),
            what: format!("{} '{role}' over {what}", op.name()),
        }
    }
}
