//! Factors on heads.

use super::super::ModelError;
use super::Builder;
use crate::graph::{ValueId, WeightSpec};
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
        let (name, width) = (self.name(column), self.graph.value(x).width);
        let found = self.tensors.find(&name).ok_or_else(|| self.missing(&name))?;
        self.check_shape(&name, &found, (heads, 1))?;
        self.used.insert(name.clone());
        let dtype = found.dtype;
        let Some(len) = dtype.row_bytes(1) else {
            return Err(ModelError::TensorPart { name, dtype, part: 0..1 });
        };
        let values = Slices::repeated(0..heads * len, len, width / heads);
        let weight = self.weight(WeightSpec { name, rows: 1, cols: width, dtype }, Some(values));
        Ok(self.push(Op::ScaleBy { weight }, &[x], width, "head_factors"))
    }
}
