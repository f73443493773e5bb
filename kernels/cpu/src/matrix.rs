//! A weight matrix as stored.

use lapwing_model::formats::DType;
use std::ops::Range;
use thiserror::Error;

/// Why bytes do not form a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MatrixError {
    /// A row is not a whole number of blocks.
    #[error("a row of {cols} values is not a whole number of {dtype} blocks of {}; the weight \
             cannot be stored in this format", dtype.block_len())]
    Row {
        /// Storage format.
        dtype: DType,
        /// Values per row.
        cols: usize,
    },
    /// Too few or too many bytes.
    #[error(
        "a {rows} × {cols} {dtype} matrix does not take {bytes} bytes; check the weight's \
             shape and format"
    )]
    Size {
        /// Storage format.
        dtype: DType,
        /// Output channels (n).
        rows: usize,
        /// Values per row (k).
        cols: usize,
        /// Bytes given.
        bytes: usize,
    },
}

/// A weight matrix as stored: `rows` output channels (n) × `cols` input channels (k).
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    dtype: DType,
    rows: usize,
    cols: usize,
    row_bytes: usize,
    bytes: &'a [u8],
}

impl<'a> Matrix<'a> {
    /// A view of `bytes` as `rows` (n) × `cols` (k) values of `dtype`.
    ///
    /// # Errors
    /// When a row is not a whole number of blocks or `bytes` has the wrong length.
    pub fn new(
        dtype: DType,
        rows: usize,
        cols: usize,
        bytes: &'a [u8],
    ) -> Result<Matrix<'a>, MatrixError> {
        let row_bytes = Matrix::check(dtype, rows, cols, bytes.len())?;
        Ok(Matrix { dtype, rows, cols, row_bytes, bytes })
    }

    /// Stored bytes of a row, if `rows` rows of `cols` values take `bytes` bytes.
    pub(crate) fn check(
        dtype: DType,
        rows: usize,
        cols: usize,
        bytes: usize,
    ) -> Result<usize, MatrixError> {
        let row_bytes = dtype.row_bytes(cols).filter(|_| cols > 0);
        let row_bytes = row_bytes.ok_or(MatrixError::Row { dtype, cols })?;
        match row_bytes.checked_mul(rows) == Some(bytes) {
            true => Ok(row_bytes),
            false => Err(MatrixError::Size { dtype, rows, cols, bytes }),
        }
    }

    /// Storage format.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Output channels (n).
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Input channels (k).
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Stored bytes of a row, at least 1.
    pub(crate) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Stored bytes of row `row`.
    pub(crate) fn row(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.row_bytes..][..self.row_bytes]
    }

    /// A range of whole rows.
    pub(crate) fn view(&self, rows: Range<usize>) -> StoredRows<'a> {
        StoredRows {
            dtype: self.dtype,
            bytes: &self.bytes[rows.start * self.row_bytes..rows.end * self.row_bytes],
            row_bytes: self.row_bytes,
            rows: rows.len(),
        }
    }
}

/// Whole rows of a weight matrix, as stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredRows<'a> {
    pub(crate) dtype: DType,
    /// Starts at the first row.
    pub(crate) bytes: &'a [u8],
    pub(crate) row_bytes: usize,
    /// Number of rows; kernels take at most 16.
    pub(crate) rows: usize,
}

impl<'a> StoredRows<'a> {
    /// A range of these rows.
    pub(crate) fn view(&self, rows: Range<usize>) -> StoredRows<'a> {
        let bytes = &self.bytes[rows.start * self.row_bytes..rows.end * self.row_bytes];
        StoredRows { bytes, rows: rows.len(), ..*self }
    }
}
