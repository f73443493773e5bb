//! Products of integers inside graphs of binary16.

use super::lower::{ADD, PRODUCT, Writer};
use super::tensor::{Op, Tensor};
use lapwing_model::device::DeviceError;
use lapwing_npu::lowering::Lowering;
use lapwing_npu::{FixedPoint, FixedProduct};

const QUANTIZE: Op<'static> = Op::plain(c"Quantize");
const DEQUANTIZE: Op<'static> = Op::plain(c"Dequantize");

/// A value in integers.
pub(super) struct Quantized {
    /// The number of its tensor in binary16.
    of: u32,
    fixed: FixedPoint,
    tensor: Tensor,
}

impl Writer<'_> {
    /// A product of integers, whose input and output are in binary16. The bias is added in binary16, too.
    pub(super) fn fixed_product(
        &mut self,
        x: &Tensor,
        matrix: &Tensor,
        bias: Option<&Tensor>,
        fixed: &FixedProduct,
    ) -> Result<Tensor, DeviceError> {
        let width = matrix.width();
        let x = self.quantized(x, fixed.input)?;
        let y = self.integers_of(PRODUCT, &[&x, matrix], fixed.output, width)?;
        let Some(bias) = bias else { return self.last(DEQUANTIZE, &[&y], width) };
        let y = self.inner(DEQUANTIZE, &[&y], &self.dims(width))?;
        self.last(ADD, &[&y, bias], width)
    }

    /// A value in integers.
    fn quantized(&mut self, x: &Tensor, fixed: FixedPoint) -> Result<Tensor, DeviceError> {
        let same = |known: &&Quantized| known.of == x.id && known.fixed == fixed;
        if let Some(known) = self.quantized.iter().find(same) {
            return Ok(known.tensor.clone());
        }
        let tensor = self.integers_of(QUANTIZE, &[x], fixed, x.width())?;
        self.quantized.push(Quantized { of: x.id, fixed, tensor: tensor.clone() });
        Ok(tensor)
    }

    /// An op with an output in integers.
    fn integers_of(
        &mut self,
        op: Op<'_>,
        inputs: &[&Tensor],
        fixed: FixedPoint,
        width: usize,
    ) -> Result<Tensor, DeviceError> {
        let dims = self.dims(width);
        let output = self.graph.integers(&dims, fixed).and_then(|output| {
            self.graph.node(op, inputs, &output)?;
            Ok(output)
        });
        output.map_err(|error| {
            let kind = op.kind.to_string_lossy();
            self.failed(format!("{kind} with integers of {dims:?}: {error}"))
        })
    }
}
