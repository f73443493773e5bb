//! Rows of a weight matrix as activations.

use crate::binary16;
use crate::cpu::unpack::{self, Block, group_len};
use crate::cpu::{Cpu, Matrix, Packed};
use crate::quant::DType;
use thiserror::Error;

/// Why a row could not be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EmbedError {
    /// No such row.
    #[error("token {id} is outside the vocabulary of {rows}; was it made by another tokenizer?")]
    Id {
        /// Asked for.
        id: u32,
        /// Rows of the matrix.
        rows: usize,
    },
}

/// A table of embeddings.
#[derive(Clone, Copy, Debug)]
pub enum Table<'a> {
    /// As stored.
    Stored(Matrix<'a>),
    /// Packed for products, where the table is also the matrix of one.
    Packed(&'a Packed),
}

impl Table<'_> {
    fn size(&self) -> (usize, usize) {
        match self {
            Table::Stored(matrix) => (matrix.rows(), matrix.cols()),
            Table::Packed(packed) => (packed.rows(), packed.cols()),
        }
    }
}

/// `out[i] = table[ids[i]] · scale`; `out` is `[ids.len()][columns of the table]`. Both forms of a
/// table give the same bits.
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
                Table::Stored(matrix) => row(matrix.dtype(), matrix.row(*id as usize), out),
                Table::Packed(packed) => packed.row(*id as usize, out),
            }
            if scale != 1.0 {
                (ctx.kernels().scale)(out, scale);
            }
        }
    });
    Ok(())
}

/// Values of a stored row.
pub(crate) fn row(dtype: DType, stored: &[u8], out: &mut [f32]) {
    let f16 = |b: &[u8; 2]| binary16::to_f32(u16::from_le_bytes(*b));
    match dtype {
        DType::F32 => values(stored, out, |b: &[u8; 4]| f32::from_le_bytes(*b)),
        DType::F16 => values(stored, out, f16),
        DType::Bf16 => values(stored, out, |b| unpack::bf16(*b)),
        _ => blocks(dtype, stored, out),
    }
}

fn values<const N: usize>(stored: &[u8], out: &mut [f32], f: impl Fn(&[u8; N]) -> f32) {
    for (out, stored) in out.iter_mut().zip(stored.as_chunks().0) {
        *out = f(stored);
    }
}

fn blocks(dtype: DType, stored: &[u8], out: &mut [f32]) {
    let mut block = Block::new();
    let group = group_len(dtype);
    let stored = stored.chunks_exact(dtype.block_bytes());
    for (out, stored) in out.chunks_exact_mut(dtype.block_len()).zip(stored) {
        unpack::one(dtype, stored, &mut block);
        for (i, out) in out.iter_mut().enumerate() {
            *out = block.scale[i / group] * f32::from(block.q[i]) + block.min[i / group];
        }
    }
}
