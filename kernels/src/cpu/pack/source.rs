//! What is packed.

use crate::cpu::loops::unpack::dequantize_row;
use crate::cpu::matrix::Matrix;
use crate::cpu::matrix::StoredRows;
use crate::cpu::packed::layout::Layout;
use crate::quant::DType;
use crate::requant::{Requant, quantize};

/// A matrix as stored, and what becomes of its values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) matrix: Matrix<'a>,
    /// To what it is requantised; rows must then be whole blocks.
    pub(crate) requant: Option<Requant>,
}

impl Source<'_> {
    /// Format that is packed.
    pub(super) fn dtype(&self) -> DType {
        self.requant.map_or(self.matrix.dtype(), Requant::dtype)
    }

    pub(super) fn layout(&self) -> Layout {
        Layout::new(self.dtype(), self.matrix.cols())
    }
}

/// A tile's rows in another format; kept from tile to tile.
#[derive(Debug, Default)]
pub(super) struct Requantizer {
    /// One row.
    values: Vec<f32>,
    /// All of them, quantised.
    stored: Vec<u8>,
}

impl Requantizer {
    /// `view` of rows of `cols` in `format`, or the first of its rows that cannot be.
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
