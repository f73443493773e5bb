//! Embedding lookup: rows of a weight matrix as activations.

use crate::cpu::context::Cpu;
use crate::cpu::loops::unpack::dequantize_row;
use crate::cpu::matrix::Matrix;
use crate::cpu::packed::PackedMatrix;
use thiserror::Error;

/// Why a row could not be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EmbedError {
    /// No such row.
    #[error("token {id} is outside the vocabulary of {rows}; was it made by another tokenizer?")]
    Id {
        /// The token id.
        id: u32,
        /// Rows of the table.
        rows: usize,
    },
}

/// An embedding table.
#[derive(Clone, Copy, Debug)]
pub enum Table<'a> {
    /// As stored.
    Stored(Matrix<'a>),
    /// Packed for matmuls, if the table is also the output matrix.
    Packed(&'a PackedMatrix),
}

impl Table<'_> {
    fn size(&self) -> (usize, usize) {
        match self {
            Table::Stored(matrix) => (matrix.rows(), matrix.cols()),
            Table::Packed(packed) => (packed.rows(), packed.cols()),
        }
    }
}

/// `out[i] = table[ids[i]] · scale`; `out` is `[ids.len()][columns of the table]`. Stored and
/// packed tables give the same bits.
///
/// # Errors
/// When an id is not a row of `table`; `out` is then unchanged.
///
/// # Panics
/// When `out` has another size.
pub fn embed_rows(
    ctx: &Cpu,
    table: Table<'_>,
    ids: &[u32],
    scale: f32,
    out: &mut [f32],
) -> Result<(), EmbedError> {
    let (rows, cols) = table.size();
    assert_eq!(out.len(), ids.len() * cols, "out is not ids × {cols}");
    if let Some(&id) = ids.iter().find(|id| **id as usize >= rows) {
        return Err(EmbedError::Id { id, rows });
    }
    let chunk = ctx.rows_per_task(ids.len(), cols);
    ctx.pool().chunks_mut(out, chunk * cols, |i, out| {
        for (id, out) in ids[i * chunk..].iter().zip(out.chunks_exact_mut(cols)) {
            match table {
                Table::Stored(matrix) => {
                    dequantize_row(matrix.dtype(), matrix.row(*id as usize), out)
                }
                Table::Packed(packed) => packed.row(*id as usize, out),
            }
            if scale != 1.0 {
                (ctx.kernels().scale)(out, scale);
            }
        }
    });
    Ok(())
}
