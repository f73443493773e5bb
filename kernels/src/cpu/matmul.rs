//! `out[m, n] = x[m, k] · W[n, k]ᵀ` for every weight format.
//!
//! Each task unpacks 16 weight rows once and multiplies them with all rows of `x`.

use crate::cpu::Cpu;
use crate::cpu::gemm::Gemm;
use crate::cpu::pool::ColumnBlock;
use crate::cpu::quantize::{ActBuffer, ActKind};
use crate::cpu::tile::{Acts, F32Tile, QTile, RowsView, TILE};
use crate::quant::DType;
use std::cell::RefCell;
use std::ops::Range;
use thiserror::Error;

/// Why bytes are not a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MatrixError {
    /// The rows do not divide into blocks.
    #[error("a row of {cols} values is not a whole number of {dtype} blocks of {}; the weight \
             cannot be stored in this format", dtype.block_len())]
    Row {
        /// Format.
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
        /// Format.
        dtype: DType,
        /// Rows.
        rows: usize,
        /// Values per row.
        cols: usize,
        /// Bytes that were given.
        bytes: usize,
    },
}

/// A weight matrix as stored: `rows` output features of `cols` input features.
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
    /// When a row is not a whole number of blocks or `bytes` has not exactly the size.
    pub fn new(
        dtype: DType,
        rows: usize,
        cols: usize,
        bytes: &'a [u8],
    ) -> Result<Matrix<'a>, MatrixError> {
        let row_bytes = dtype.row_bytes(cols).filter(|_| cols > 0);
        let row_bytes = row_bytes.ok_or(MatrixError::Row { dtype, cols })?;
        if row_bytes.checked_mul(rows) != Some(bytes.len()) {
            let bytes = bytes.len();
            return Err(MatrixError::Size { dtype, rows, cols, bytes });
        }
        Ok(Matrix { dtype, rows, cols, row_bytes, bytes })
    }

    /// Format.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Output features (n).
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Input features (k).
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The part of it that computes these output features.
    ///
    /// # Panics
    /// When it has not so many.
    pub fn features(&self, features: Range<usize>) -> Matrix<'a> {
        let bytes = &self.bytes[features.start * self.row_bytes..features.end * self.row_bytes];
        Matrix { rows: features.len(), bytes, ..*self }
    }

    /// Stored bytes of row `row`, which must exist.
    pub(crate) fn row(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.row_bytes..][..self.row_bytes]
    }

    fn view(&self, rows: Range<usize>, cols: Range<usize>) -> RowsView<'a> {
        RowsView {
            dtype: self.dtype,
            bytes: &self.bytes[rows.start * self.row_bytes..rows.end * self.row_bytes],
            row_bytes: self.row_bytes,
            rows: rows.len(),
            cols,
        }
    }
}

/// What a thread keeps between calls.
#[derive(Default)]
struct Scratch {
    acts: ActBuffer,
    tile: QTile,
    floats: F32Tile,
    out: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Lends the thread's scratch; a nested call gets a fresh one.
fn with_scratch<R>(f: impl FnOnce(&mut Scratch) -> R) -> R {
    let mut scratch = SCRATCH.take();
    let result = f(&mut scratch);
    SCRATCH.set(scratch);
    result
}

/// `out[m, n] = x[m, k] · weight[n, k]ᵀ (+ bias[n])`.
///
/// Quantised weights multiply activations that are quantised as llama.cpp does for the
/// format; float weights multiply them as they are.
///
/// # Panics
/// When `x` is not whole rows of k, or `out` or `bias` have not m·n or n values.
pub fn matmul(ctx: &Cpu, weight: &Matrix<'_>, x: &[f32], bias: Option<&[f32]>, out: &mut [f32]) {
    let (n, k) = (weight.rows, weight.cols);
    let m = x.len() / k;
    assert_eq!(x.len(), m * k, "x is not whole rows of {k}");
    assert_eq!(out.len(), m * n, "out is not {m} × {n}");
    assert!(bias.is_none_or(|b| b.len() == n), "bias is not {n} values");
    if m == 0 {
        return;
    }
    let product = Product { ctx, weight, bias };
    match ActKind::of(weight.dtype) {
        Some(kind) => with_scratch(|scratch| {
            let mut acts = std::mem::take(&mut scratch.acts);
            acts.fill(ctx, kind, x, k);
            let rows = acts.acts();
            product.each_tile(out, |block, s| product.quantised(&rows, block, s));
            scratch.acts = acts;
        }),
        None => product.each_tile(out, |block, s| product.floats(x, block, s)),
    }
}

struct Product<'a> {
    ctx: &'a Cpu,
    weight: &'a Matrix<'a>,
    bias: Option<&'a [f32]>,
}

/// The columns of `out` that belong to one tile.
struct TileOut<'a> {
    features: Range<usize>,
    block: ColumnBlock<'a, f32>,
}

impl Product<'_> {
    /// Calls `f` for each tile, in parallel, and then adds the bias.
    fn each_tile(&self, out: &mut [f32], f: impl Fn(&TileOut<'_>, &mut Scratch) + Sync) {
        let n = self.weight.rows;
        self.ctx.pool().columns_mut(out, n, TILE, |start, block| {
            let features = start..start + block.width();
            let mut to = TileOut { features, block };
            with_scratch(|scratch| {
                f(&to, scratch);
                self.write(&scratch.out, &mut to);
            });
        });
    }

    fn quantised(&self, acts: &Acts<'_>, to: &TileOut<'_>, scratch: &mut Scratch) {
        let view = self.weight.view(to.features.clone(), 0..self.weight.cols);
        (self.ctx.kernels().unpack)(&view, &mut scratch.tile);
        scratch.out.resize(acts.rows * TILE, 0.0);
        (self.ctx.kernels().dot_tile)(&scratch.tile, acts, &mut scratch.out);
    }

    fn floats(&self, x: &[f32], to: &TileOut<'_>, scratch: &mut Scratch) {
        /// Columns unpacked at a time: a tile of them stays in the first-level cache.
        const COLUMNS: usize = 256;
        let (rows, k) = (to.block.rows(), self.weight.cols);
        scratch.out.clear();
        scratch.out.resize(rows * TILE, 0.0);
        for start in (0..k).step_by(COLUMNS) {
            let cols = start..(start + COLUMNS).min(k);
            let depth = cols.len();
            let view = self.weight.view(to.features.clone(), cols);
            (self.ctx.kernels().unpack_f32)(&view, &mut scratch.floats);
            let gemm = Gemm {
                a: &x[start..],
                a_stride: k,
                b: &scratch.floats.data,
                b_stride: TILE,
                c_stride: TILE,
                rows,
                depth,
                width: TILE,
            };
            (self.ctx.kernels().gemm)(&gemm, &mut scratch.out);
        }
    }

    fn write(&self, from: &[f32], to: &mut TileOut<'_>) {
        let bias = self.bias.map(|b| &b[to.features.clone()]);
        for (row, from) in from.as_chunks::<TILE>().0.iter().enumerate() {
            let to = to.block.row_mut(row);
            to.copy_from_slice(&from[..to.len()]);
            if let Some(bias) = bias {
                to.iter_mut().zip(bias).for_each(|(to, b)| *to += b);
            }
        }
    }
}
