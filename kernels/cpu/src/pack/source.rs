//! Matrices to pack, from memory or from a weight file, and requantisation on the fly.

use crate::matrix::{Matrix, MatrixError, StoredRows};
use crate::packed::layout::Layout;
use lapwing_model::formats::DType;
use lapwing_model::requant::{Requant, quantize};
use lapwing_model::weights::{TensorReadError, WeightTensor};
use std::ops::Range;

/// A stored matrix and the format it is packed in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    stored: Stored<'a>,
    /// Form to requantise to; rows must then be whole groups.
    requant: Option<Requant>,
}

/// Where the rows of a matrix are.
#[derive(Clone, Copy, Debug)]
enum Stored<'a> {
    Memory(Matrix<'a>),
    File(FileMatrix<'a>),
}

/// A matrix in a weight file: `rows` output channels (n) × `cols` input channels (k).
#[derive(Clone, Copy, Debug)]
pub struct FileMatrix<'a> {
    tensor: &'a WeightTensor,
    rows: usize,
    cols: usize,
    row_bytes: usize,
}

impl<'a> FileMatrix<'a> {
    /// A view of `tensor` as `rows` (n) × `cols` (k) values.
    ///
    /// # Errors
    /// As [`Matrix::new`].
    pub fn new(
        tensor: &'a WeightTensor,
        rows: usize,
        cols: usize,
    ) -> Result<FileMatrix<'a>, MatrixError> {
        let (dtype, bytes) = (tensor.dtype(), tensor.bytes());
        let row_bytes = Matrix::check(dtype, rows, cols, bytes)?;
        Ok(FileMatrix { tensor, rows, cols, row_bytes })
    }

    /// Storage format.
    pub(crate) fn dtype(&self) -> DType {
        self.tensor.dtype()
    }

    /// Number of rows and values per row.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// Reads stored rows from row `first` on into `to`, `rows` whole rows.
    pub(crate) fn read(&self, rows: Range<usize>, to: &mut Vec<u8>) -> Result<(), TensorReadError> {
        to.resize(rows.len() * self.row_bytes, 0);
        self.tensor.read_range(rows.start * self.row_bytes, to)
    }

    /// Checks that the file is still the one that was opened.
    pub(crate) fn check_unchanged(&self) -> Result<(), TensorReadError> {
        self.tensor.check_unchanged()
    }
}

impl<'a> Source<'a> {
    /// A matrix in memory.
    pub(super) fn memory(matrix: Matrix<'a>, requant: Option<Requant>) -> Source<'a> {
        Source { stored: Stored::Memory(matrix), requant }
    }

    /// A matrix in a weight file.
    pub(crate) fn file(matrix: FileMatrix<'a>, requant: Option<Requant>) -> Source<'a> {
        Source { stored: Stored::File(matrix), requant }
    }

    /// Form to requantise to.
    pub(super) fn requant(&self) -> Option<Requant> {
        self.requant
    }

    /// Storage format.
    pub(super) fn stored_dtype(&self) -> DType {
        match &self.stored {
            Stored::Memory(matrix) => matrix.dtype(),
            Stored::File(matrix) => matrix.dtype(),
        }
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        match &self.stored {
            Stored::Memory(matrix) => matrix.rows(),
            Stored::File(matrix) => matrix.rows,
        }
    }

    fn cols(&self) -> usize {
        match &self.stored {
            Stored::Memory(matrix) => matrix.cols(),
            Stored::File(matrix) => matrix.cols,
        }
    }

    /// Stored bytes of a row, at least 1.
    pub(super) fn row_bytes(&self) -> usize {
        match &self.stored {
            Stored::Memory(matrix) => matrix.row_bytes(),
            Stored::File(matrix) => matrix.row_bytes,
        }
    }

    /// Format of the packed values.
    fn dtype(&self) -> DType {
        self.requant.map_or(self.stored_dtype(), Requant::dtype)
    }

    pub(super) fn layout(&self) -> Layout {
        Layout::new(self.dtype(), self.cols())
    }

    /// A range of whole rows; `buffer` holds them if they come from a file.
    pub(super) fn view<'b>(
        &'b self,
        rows: Range<usize>,
        buffer: &'b mut Vec<u8>,
    ) -> Result<StoredRows<'b>, TensorReadError> {
        match &self.stored {
            Stored::Memory(matrix) => Ok(matrix.view(rows)),
            Stored::File(matrix) => {
                matrix.read(rows.clone(), buffer)?;
                let (dtype, row_bytes) = (matrix.dtype(), matrix.row_bytes);
                Ok(StoredRows { dtype, bytes: buffer, row_bytes, rows: rows.len() })
            }
        }
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
    /// When the columns are not whole groups.
    pub(super) fn rows(
        &mut self,
        view: &StoredRows<'_>,
        format: Requant,
        cols: usize,
    ) -> Result<StoredRows<'_>, usize> {
        let dtype = format.dtype();
        let row_bytes = dtype.row_bytes(cols);
        let row_bytes = row_bytes.unwrap_or_else(|| panic!("{cols} columns in {dtype}"));
        self.values.resize(cols, 0.0);
        self.stored.resize(view.rows * row_bytes, 0);
        let stored = view.bytes.chunks_exact(view.row_bytes).take(view.rows);
        for (r, (to, row)) in self.stored.chunks_exact_mut(row_bytes).zip(stored).enumerate() {
            view.dtype.dequantize_row(row, &mut self.values);
            if !quantize(format, &self.values, to) {
                return Err(r);
            }
        }
        Ok(StoredRows { dtype, bytes: &self.stored, row_bytes, rows: view.rows })
    }
}
