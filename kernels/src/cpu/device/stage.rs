//! What the nodes of a stage read.

use std::borrow::Cow;

use super::CpuDevice;
use crate::cpu::Features;
use crate::device::{Batch, DeviceError, Slot, TensorSet};
use crate::graph::{Node, ValueId};
use crate::part::Part;

/// A part of a stage, in the middle of it.
#[derive(Clone, Copy)]
pub(super) struct Stage<'a> {
    pub(super) device: &'a CpuDevice,
    pub(super) part: &'a Part,
    pub(super) batch: &'a Batch,
    pub(super) inputs: &'a TensorSet,
    /// First node of the stage, and the values written since. Value numbers are node numbers.
    pub(super) written: (usize, &'a [Option<Slot>]),
}

impl<'a> Stage<'a> {
    /// The part's rows of a value.
    pub(super) fn rows(&self, id: ValueId) -> usize {
        self.part.rows_of(self.device.graph.value(id), self.batch).len()
    }

    /// Room for the part's rows and features of what a node writes.
    pub(super) fn output(&self, node: &Node) -> Slot {
        let width = self.device.graph.value(node.output).width;
        let features = self.part.features.of_width(width);
        self.device.slots.take(self.rows(node.output) * features.len())
    }

    /// The part's rows of an input, with all features.
    pub(super) fn whole(&self, node: &Node, index: usize) -> Result<&'a [f32], DeviceError> {
        let (values, is_part) = self.input(node, index)?;
        if is_part && !self.part.features.is_whole() {
            return Err(self.unsupported(node, "a value of which only some features are here"));
        }
        Ok(values)
    }

    /// The part's rows of an input, with the part's features.
    pub(super) fn columns(&self, node: &Node, index: usize) -> Result<Cow<'a, [f32]>, DeviceError> {
        let (values, is_part) = self.input(node, index)?;
        if is_part || self.part.features.is_whole() {
            return Ok(Cow::Borrowed(values));
        }
        let width = self.device.graph.value(node.inputs[index]).width;
        let features = self.part.features.of_width(width);
        let rows = values.chunks_exact(width).flat_map(|row| &row[features.clone()]);
        Ok(Cow::Owned(rows.copied().collect()))
    }

    /// The part's rows of an input, and whether it holds the part's features only because it was
    /// written in this stage.
    fn input(&self, node: &Node, index: usize) -> Result<(&'a [f32], bool), DeviceError> {
        let id = node.inputs[index];
        let missing = DeviceError::MissingValue { value: id.0, role: node.role };
        let (first, written) = self.written;
        if let Some(at) = id.0.checked_sub(first) {
            let slot = written.get(at).and_then(Option::as_ref).ok_or(missing)?;
            return Ok((slot, true));
        }
        let tensor = self.inputs.get(id).ok_or(missing)?;
        let rows = self.part.rows_of(self.device.graph.value(id), self.batch);
        let values = tensor.host().ok_or(DeviceError::OtherMemory { value: id.0 })?;
        Ok((&values[rows.start * tensor.width..rows.end * tensor.width], false))
    }

    /// The part's features of a product's matrix and bias.
    pub(super) fn features(&self, product: usize) -> (Features<'a>, Option<&'a [f32]>) {
        let (weight, bias) = self.device.known().product(product);
        let features = self.part.features.of_width(weight.rows());
        (weight.features(features.clone()), bias.map(|bias| &bias[features]))
    }

    pub(super) fn unsupported(&self, node: &Node, what: &str) -> DeviceError {
        let Node { op, role, .. } = node;
        DeviceError::Unsupported {
            device: self.device.name.clone(),
            what: format!("{} '{role}' over {what}", op.name()),
        }
    }
}
