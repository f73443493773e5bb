//! Products with matrices that have rows of several kinds for each head.

use std::ops::Range;

use super::weights::Product;
use super::{Builder, ModelError};
use crate::graph::{ValueId, WeightId, WeightSpec};
use crate::weights::Slices;

/// Rows of a matrix that has the same number of rows for each head: some of those of each.
pub(super) struct HeadRows {
    pub(super) name: &'static str,
    pub(super) heads: usize,
    /// Rows of a head.
    pub(super) each: usize,
    pub(super) rows: Range<usize>,
    /// What is added to the product with these rows.
    pub(super) bias: Option<WeightId>,
}

impl Builder<'_> {
    /// A product with some rows of each head in a matrix.
    pub(super) fn head_rows(
        &mut self,
        role: &'static str,
        x: ValueId,
        of: &HeadRows,
    ) -> Result<ValueId, ModelError> {
        let (weight, width) = (self.head_weight_rows(x, of)?, of.heads * of.rows.len());
        self.product(of.name, x, Product { weight, bias: of.bias, width, role })
    }

    fn head_weight_rows(&mut self, x: ValueId, of: &HeadRows) -> Result<WeightId, ModelError> {
        let name = self.name(&format!("{}.weight", of.name));
        let (rows, cols) = (of.heads * of.rows.len(), self.graph.value(x).width);
        let found = self.tensors.find(&name).ok_or_else(|| self.missing(&name))?;
        self.check_shape(&name, &found, (of.heads * of.each, cols))?;
        self.used.insert(name.clone());
        let dtype = found.dtype;
        let Some(row) = dtype.row_bytes(cols) else {
            let part = of.rows.clone();
            return Err(ModelError::TensorPart { name, dtype, part });
        };
        let (start, step) = (of.rows.start * row, of.each * row);
        let slices = Slices::stepped(start..start + of.heads * step, of.rows.len() * row, step);
        Ok(self.graph.add_part(WeightSpec { name, rows, cols, dtype }, slices))
    }
}
