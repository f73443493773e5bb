//! Weights as constants of a graph.

use std::rc::Rc;

use super::abi::{Element, Quantization, ScaleOffset};
use super::lower::{LAST, Writer};
use super::tensor::{Blocks, Tensor};
use lapwing_model::binary16;
use lapwing_model::device::DeviceError;
use lapwing_model::graph::WeightId;
use lapwing_npu::SpecNode;
use lapwing_npu::lowering::Lowering;
use lapwing_npu::weight_form::{FACTOR_MAX, WeightForm};

/// Rows of a matrix that are read at a time.
const ROWS: usize = 256;

/// Whether a matrix is written in blocks. Those without blocks are, too, where activations are integers, with the largest
/// factor: the emulator drops low bits of products of 16-bit with small integers.
pub(super) fn in_blocks(form: WeightForm, has_integers: bool) -> bool {
    form.block().is_some() || (has_integers && form == WeightForm::Int4)
}

impl Writer<'_> {
    /// A vector in binary16.
    pub(super) fn vector(&mut self, values: &[f32]) -> Result<Tensor, DeviceError> {
        let halves: Vec<u16> = values.iter().map(|x| binary16::from_f32(*x)).collect();
        let data = bytemuck::cast_slice(&halves);
        self.constant(Element::F16, &[values.len()], Quantization::NONE, data)
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
        let data = bytemuck::cast_slice(&halves);
        self.constant(Element::F16, &[1, 1, k, n], Quantization::NONE, data)
    }

    /// The rows of a matrix that the node uses, transposed, as integers with a scale for each, and factors of it for
    /// blocks.
    pub(super) fn integers(
        &mut self,
        node: &SpecNode,
        weight: WeightId,
    ) -> Result<Tensor, DeviceError> {
        let (n, k) = (node.features.len(), self.weights.graph.weights()[weight.0].cols);
        let (mut integers, mut scales, mut factors) = (vec![0i8; k * n], vec![1.0; n], Vec::new());
        let form = self.form;
        self.transposed(node, weight, |channel, row| {
            let Some(row) = form.integers(row) else { return };
            scales[channel] = row.scale;
            factors.extend(row.factors);
            let column = integers.iter_mut().skip(channel).step_by(n);
            column.zip(row.integers).for_each(|(to, q)| *to = q);
        })?;
        if form.block().is_none() && in_blocks(form, self.fixed.is_some()) {
            // One block for each channel.
            factors = vec![FACTOR_MAX; n];
            scales.iter_mut().for_each(|scale| *scale /= f32::from(FACTOR_MAX));
        }
        let offsets = vec![0; n];
        let channels: Vec<ScaleOffset> =
            scales.iter().map(|scale| ScaleOffset { scale: *scale, offset: 0 }).collect();
        let axis = LAST as i32;
        let (dims, data) = ([1, 1, k, n], bytemuck::cast_slice(&integers));
        if in_blocks(form, self.fixed.is_some()) {
            let blocks = Rc::new(Blocks::new(axis, channels, factors));
            let matrix = self.constant(Element::Fixed8, &dims, blocks.quantization(), data)?;
            return Ok(Tensor { blocks: Some(blocks), ..matrix });
        }
        let quantization = match form {
            WeightForm::Int4 => Quantization::by_axis_in_bits(axis, 4, &scales, &offsets),
            _ => Quantization::by_axis(axis, &channels),
        };
        self.constant(Element::Fixed8, &dims, quantization, data)
    }

    /// Visits the rows of a matrix that the node uses in order, each with its place among them.
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
        quantization: Quantization,
        data: &[u8],
    ) -> Result<Tensor, DeviceError> {
        let constant = self.graph.constant(element, dims, quantization, data);
        constant.map_err(|error| self.failed(error.to_string()))
    }
}
