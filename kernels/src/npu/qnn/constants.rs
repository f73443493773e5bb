//! Weights as constants of a graph.

use super::abi::{Element, Quantization, ScaleOffset};
use super::lower::{LAST, Writer};
use super::tensor::Tensor;
use crate::binary16;
use crate::device::DeviceError;
use crate::graph::WeightId;
use crate::npu::lowering::Lowering;
use crate::npu::spec::SpecNode;
use crate::npu::weight_form::WeightForm;

/// Rows of a matrix that are read at a time.
const ROWS: usize = 256;

impl Writer<'_> {
    /// A vector in binary16.
    pub(super) fn vector(&mut self, values: &[f32]) -> Result<Tensor, DeviceError> {
        let halves: Vec<u16> = values.iter().map(|x| binary16::from_f32(*x)).collect();
        let data = (Quantization::NONE, bytemuck::cast_slice(&halves));
        self.constant(Element::F16, &[values.len()], data)
    }

    /// The rows of a matrix that the node uses, transposed, as binary16.
    pub(super) fn floats(
        &mut self,
        node: &SpecNode,
        weight: WeightId,
    ) -> Result<Tensor, DeviceError> {
        let (n, k) = (node.features.len(), self.weights.graph.weights()[weight.0].cols);
        let mut halves = vec![0u16; k * n];
        self.transposed(node, weight, |channel, row| {
            let column = halves.iter_mut().skip(channel).step_by(n);
            column.zip(row).for_each(|(to, x)| *to = binary16::from_f32(*x));
        })?;
        let data = (Quantization::NONE, bytemuck::cast_slice(&halves));
        self.constant(Element::F16, &[1, 1, k, n], data)
    }

    /// The rows of a matrix that the node uses, transposed, as integers with a scale for each.
    pub(super) fn integers(
        &mut self,
        node: &SpecNode,
        weight: WeightId,
    ) -> Result<Tensor, DeviceError> {
        let (n, k) = (node.features.len(), self.weights.graph.weights()[weight.0].cols);
        let (mut integers, mut scales) = (vec![0i8; k * n], vec![1.0; n]);
        let form = self.form;
        self.transposed(node, weight, |channel, row| {
            let Some((scale, row)) = form.integers(row) else { return };
            scales[channel] = scale;
            let column = integers.iter_mut().skip(channel).step_by(n);
            column.zip(row).for_each(|(to, q)| *to = q);
        })?;
        let offsets = vec![0; n];
        let channels: Vec<ScaleOffset> =
            scales.iter().map(|scale| ScaleOffset { scale: *scale, offset: 0 }).collect();
        let axis = LAST as i32;
        let quantization = match form {
            WeightForm::Int4 => Quantization::by_axis_in_bits((axis, 4), &scales, &offsets),
            _ => Quantization::by_axis(axis, &channels),
        };
        let data = (quantization, bytemuck::cast_slice(&integers));
        self.constant(Element::Fixed8, &[1, 1, k, n], data)
    }

    /// Visits the rows of a matrix that the node uses, each with its place among them.
    fn transposed(
        &self,
        node: &SpecNode,
        weight: WeightId,
        mut visit: impl FnMut(usize, &[f32]),
    ) -> Result<(), DeviceError> {
        let (features, k) = (&node.features, self.weights.graph.weights()[weight.0].cols);
        for from in features.clone().step_by(ROWS) {
            let rows = from..features.end.min(from + ROWS);
            let values = self.weights.float_rows(weight, rows.clone())?;
            for (channel, row) in rows.zip(values.chunks_exact(k.max(1))) {
                visit(channel - features.start, row);
            }
        }
        Ok(())
    }

    fn constant(
        &mut self,
        element: Element,
        dims: &[usize],
        data: (Quantization, &[u8]),
    ) -> Result<Tensor, DeviceError> {
        let constant = self.graph.constant(element, dims, data);
        constant.map_err(|error| self.failed(error.to_string()))
    }
}
