//! Writes requantised tensors, a few rows at a time.

use super::{Requant, quantize};
use crate::weights::{TensorReadError, WeightTensor};
use std::io::{self, Write};
use thiserror::Error;

/// Bytes of the weight file that are read at once, unless a row has more.
const READ_BYTES: usize = 1 << 20;

/// The reason why a tensor cannot be written in another form.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RequantError {
    /// The tensor cannot be read.
    #[error(transparent)]
    Read(#[from] TensorReadError),
    /// The output failed.
    #[error("cannot write the weight file: {0}; check the free disk space")]
    Write(#[from] io::Error),
    /// Rows are not whole groups of the form.
    #[error(
        "tensor '{name}' cannot be requantised to {format}: its {cols} columns are not whole groups; \
         keep it as stored"
    )]
    Columns {
        /// Tensor name.
        name: String,
        /// Values per row.
        cols: usize,
        /// Requested form.
        format: Requant,
    },
    /// A value that the form cannot store.
    #[error(
        "tensor '{name}' cannot be requantised to {format}: its row {row} has a value that is \
         infinite, NaN, or too large for a binary16 scale; keep it as stored"
    )]
    Values {
        /// Tensor name.
        name: String,
        /// First such row.
        row: usize,
        /// Requested form.
        format: Requant,
    },
}

impl Requant {
    /// Writes `tensor` in the blocks of this form's [`dtype`](Requant::dtype): the bytes that packing
    /// requantises it to. Holds a few rows in memory at a time.
    ///
    /// # Errors
    /// [`RequantError`] when the tensor cannot be read, `out` fails, or the form cannot store it.
    pub fn write(self, tensor: &WeightTensor, out: &mut dyn Write) -> Result<(), RequantError> {
        let (shape, stored, name) = (tensor.shape(), tensor.dtype(), || tensor.info().name.clone());
        let (rows, cols) = (shape.rows(), shape.cols());
        let sizes = self.group_len(cols).and_then(|_| self.dtype().row_bytes(cols));
        let sizes = sizes.zip(stored.row_bytes(cols));
        let Some((to_bytes, from_bytes)) = sizes else {
            return Err(RequantError::Columns { name: name(), cols, format: self });
        };
        let at_once = (READ_BYTES / from_bytes.max(1)).max(1);
        let (mut read, mut values) = (vec![0; at_once.min(rows) * from_bytes], vec![0.0; cols]);
        let mut written = vec![0; at_once.min(rows) * to_bytes];
        for first in (0..rows).step_by(at_once) {
            let count = at_once.min(rows - first);
            let (read, written) =
                (&mut read[..count * from_bytes], &mut written[..count * to_bytes]);
            tensor.read_range(first * from_bytes, read)?;
            let lines = read.chunks_exact(from_bytes).zip(written.chunks_exact_mut(to_bytes));
            for (row, (from, to)) in (first..).zip(lines) {
                stored.dequantize_row(from, &mut values);
                if !quantize(self, &values, to) {
                    return Err(RequantError::Values { name: name(), row, format: self });
                }
            }
            out.write_all(written)?;
        }
        Ok(())
    }
}
