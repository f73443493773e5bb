//! Factors on heads.

use super::super::ModelError;
use super::Builder;
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
        let found = self.tensors.find(&name).ok_or_else(|| self.missing(&name))?;
        self.check_shape(&name, &found, (heads, 1))?;
        self.used.insert(name.clone());
        let dtype = found.dtype;
        let Some(len) = dtype.row_bytes(1) else {
            return Err(ModelError::TensorPart { name, dtype, part: 0..1 });
        };
        let values = Slices::repeated(0..heads * len, len, times);
        let spec = WeightSpec { name, rows: 1, cols: heads * times, dtype };
        Ok(self.weight(spec, Some(values)))
    }
}
