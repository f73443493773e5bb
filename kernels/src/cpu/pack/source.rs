//! Matrices to pack, and requantisation on the fly.

use crate::cpu::loops::unpack::dequantize_row;
use crate::cpu::matrix::{Matrix, StoredRows};
use crate::cpu::packed::layout::Layout;
use crate::quant::DType;
use crate::requant::{Requant, quantize};

/// A stored matrix and the format it is packed in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) matrix: Matrix<'a>,
    /// Format to requantise to; rows must then be whole blocks.
    pub(crate) requant: Option<Requant>,
}

impl Source<'_> {
    /// Format of the packed values.
    pub(super) fn dtype(&self) -> DType {
        self.requant.map_or(self.matrix.dtype(), Requant::dtype)
    }

    pub(super) fn layout(&self) -> Layout {
        Layout::new(self.dtype(), self.matrix.cols())
    }
}

/// Requantises the rows of a tile; reuses its memory.
#[derive(Debug, Default)]
pub(super) struct Requantizer {
    /// One dequantised row.
    values: Vec<f32>,
    /// All rows, quantised.
    stored: Vec<u8>,
}

impl Requantizer {
    /// Requantises rows of `cols` columns to `format`; the error is the index of the first row that
    /// cannot be represented.
    ///
    /// # Panics
    /// When the columns are not whole blocks.
    pub(super) fn rows(
        &mut self,
        view: &StoredRows<'_>,
        (format, cols): (Requant, usize),
    ) -> Result<StoredRows<'_>, usize> {
        let dtype = format.dtype();
        let row_bytes = dtype.row_bytes(cols);
        let row_bytes = row_bytes.unwrap_or_else(|| panic!("{cols} columns in {dtype}"));
        self.values.resize(cols, 0.0);
        self.stored.resize(view.rows * row_bytes, 0);
        let stored = view.bytes.chunks_exact(view.row_bytes).take(view.rows);
        for (r, (to, row)) in self.stored.chunks_exact_mut(row_bytes).zip(stored).enumerate() {
            dequantize_row(view.dtype, row, &mut self.values);
            if !quantize(format, &self.values, to) {
                return Err(r);
            }
        }
        Ok(StoredRows { dtype, bytes: &self.stored, row_bytes, rows: view.rows })
    }
}
