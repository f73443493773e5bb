//! Embedding lookup: rows of a weight matrix as activations.

use crate::context::Cpu;
use crate::matrix::Matrix;
use crate::pack::source::FileMatrix;
use crate::packed::PackedMatrix;
use lapwing_model::sync::{Mutex, lock};
use lapwing_model::weights::TensorReadError;
use std::cell::RefCell;
use thiserror::Error;

/// Why a row could not be looked up.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// No such row.
    #[error("token {id} is outside the vocabulary of {rows}; was it made by another tokenizer?")]
    Id {
        /// The token id.
        id: u32,
        /// Rows of the table.
        rows: usize,
    },
    /// The row cannot be read from the weight file.
    #[error(transparent)]
    Read(#[from] TensorReadError),
}

thread_local! {
    /// Buffer for a row that is read from a file.
    static ROW: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An embedding table.
#[derive(Clone, Copy, Debug)]
pub enum Table<'a> {
    /// As stored.
    Stored(Matrix<'a>),
    /// As stored, in a weight file.
    File(FileMatrix<'a>),
    /// Packed for matmuls, if the table is also the output matrix.
    Packed(&'a PackedMatrix),
}

impl Table<'_> {
    fn size(&self) -> (usize, usize) {
        match self {
            Table::Stored(matrix) => (matrix.rows(), matrix.cols()),
            Table::File(matrix) => matrix.size(),
            Table::Packed(packed) => (packed.rows(), packed.cols()),
        }
    }
}

/// `out[i] = table[ids[i]] · scale`; `out` is `[ids.len()][columns of the table]`. Stored and
/// packed tables give the same bits.
///
/// # Errors
/// When an id is not a row of `table`; `out` is then unchanged. When a row cannot be read from its
/// file, or the file has been changed; the values of `out` are then undefined.
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
    if let Table::File(matrix) = table {
        matrix.check_unchanged()?;
    }
    let failed = Mutex::new(None);
    let chunk = ctx.rows_per_task(ids.len(), cols);
    ctx.pool().chunks_mut(out, chunk * cols, |i, out| {
        for (id, out) in ids[i * chunk..].iter().zip(out.chunks_exact_mut(cols)) {
            let id = *id as usize;
            match table {
                Table::Stored(matrix) => matrix.dtype().dequantize_row(matrix.row(id), out),
                Table::File(matrix) => {
                    if let Err(error) = row_of_file(&matrix, id, out) {
                        *lock(&failed) = Some(error);
                        return;
                    }
                }
                Table::Packed(packed) => packed.row(id, out),
            }
            if scale != 1.0 {
                (ctx.kernels().scale)(out, scale);
            }
        }
    });
    let failed = lock(&failed).take();
    failed.map_or(Ok(()), |error| Err(EmbedError::Read(error)))
}

/// `out = x + row_of(i)` for row i of `x`, which are rows of `width` values.
///
/// # Panics
/// When `x` and `out` differ in length or are not whole rows, or an added row has another width.
pub fn add_rows<'a>(
    ctx: &Cpu,
    x: &[f32],
    width: usize,
    row_of: impl Fn(usize) -> &'a [f32] + Sync,
    out: &mut [f32],
) {
    assert!(width > 0 && x.len() == out.len() && x.len().is_multiple_of(width), "not whole rows");
    let kernels = ctx.kernels();
    let chunk = ctx.rows_per_task(x.len() / width, width);
    ctx.pool().chunks_mut(out, chunk * width, |i, out| {
        let x = x[i * chunk * width..].chunks_exact(width);
        for (row, (x, out)) in (i * chunk..).zip(x.zip(out.chunks_exact_mut(width))) {
            let added = row_of(row);
            assert_eq!(added.len(), width, "an added row is not {width} values");
            (kernels.add)(x, added, out);
        }
    });
}

fn row_of_file(
    matrix: &FileMatrix<'_>,
    row: usize,
    out: &mut [f32],
) -> Result<(), TensorReadError> {
    ROW.with_borrow_mut(|stored| {
        matrix.read(row..row + 1, stored)?;
        matrix.dtype().dequantize_row(stored, out);
        Ok(())
    })
}
