//! Factors on heads.

use super::super::ModelError;
use super::Builder;
use crate::formats::DType;
use crate::graph::{ValueId, WeightId, WeightSpec};
use crate::op::Op;
use crate::weights::Slices;

impl Builder<'_> {
    /// The heads of `x` times a factor each: the values of a column of the current layer.
    pub(crate) fn scaled_heads(
        &mut self,
        column: &str,
        x: ValueId,
        heads: usize,
    ) -> Result<ValueId, ModelError> {
        let width = self.graph.value(x).width;
        let weight = self.column(column, heads, width / heads)?;
        Ok(self.push(Op::ScaleBy { weight }, &[x], width, "head_factors"))
    }

    /// The values of a column of the current layer, one for each head, as a vector that has each so many times in a row.
    pub(super) fn column(
        &mut self,
        column: &str,
        heads: usize,
        times: usize,
    ) -> Result<WeightId, ModelError> {
        let name = self.name(column);
        let (dtype, values) = self.repeated(&name, [heads, 1, 1], times)?;
        let spec = WeightSpec { name, rows: 1, cols: heads * times, dtype };
        Ok(self.weight(spec, Some(values)))
    }

    /// A tensor of matrices below each other, each of them `times` times: `count` matrices of so many rows and columns with all copies.
    pub(super) fn repeated_rows(
        &mut self,
        name: &str,
        [count, rows, cols]: [usize; 3],
        times: usize,
    ) -> Result<WeightId, ModelError> {
        let (dtype, values) = self.repeated(name, [count / times, rows, cols], times)?;
        let spec = WeightSpec { name: name.to_owned(), rows: count * rows, cols, dtype };
        Ok(self.weight(spec, Some(values)))
    }

    /// The format of a tensor `[count · rows, columns]`, and its rows, each `rows` of them `times` times.
    fn repeated(
        &mut self,
        name: &str,
        [count, rows, cols]: [usize; 3],
        times: usize,
    ) -> Result<(DType, Slices), ModelError> {
        let found = self.tensors.find(name).ok_or_else(|| self.missing(name))?;
        self.check_shape(name, &found, (count * rows, cols))?;
        self.used.insert(name.to_owned());
        let dtype = found.dtype;
        let Some(len) = dtype.row_bytes(rows * cols) else {
            return Err(ModelError::TensorPart { name: name.to_owned(), dtype, part: 0..rows });
        };
        Ok((dtype, Slices::repeated(0..count * len, len, times)))
    }
}
