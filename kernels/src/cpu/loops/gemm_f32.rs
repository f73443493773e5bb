//! Matmuls of float weights in blocks of a few rows × one, two or four tiles. Stored values are
//! converted as they are read.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

mod block;

use crate::cpu::loops::gemm_args::GemmF32;
use crate::cpu::loops::prefetch_stream::{PrefetchStream, TileJump};
use crate::cpu::packed::layout::{LINE, TILE};
use crate::cpu::simd::f32x16::F32x16;
use crate::quant::DType;
use block::{Bf16, Block, F16, F32, FloatFormat, PrefetchLines};

/// Most rows of a register block.
pub(crate) const ROWS: usize = 6;

/// Bytes of a tile's columns that several blocks of rows multiply one after another: half of a small
/// first-level cache.
const COLUMN_BYTES: usize = 16 << 10;

/// Bytes of a tile between two prefetches of a block.
const PREFETCH_BYTES: usize = 8 * LINE;

/// Tiles whose columns such blocks multiply before the next columns: activations, which rows of many
/// columns cannot all keep in a cache, are read once for them.
const SIDE_BY_SIDE: usize = 4;

/// Tiles of a block. Each sum is a dependency chain, so blocks of few rows need more tiles to hide
/// latency; with 3 rows, two tiles would need more registers than there are.
const fn tiles_per_block(rows: usize) -> usize {
    match rows {
        1 => 4,
        2 => 2,
        _ => 1,
    }
}

/// Multiplies float tiles; every sum runs over the columns in order.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn gemm_f32<V: F32x16>(job: &GemmF32<'_>, out: &mut [f32]) {
    job.check(out);
    if job.rows == 0 || out.is_empty() {
        return;
    }
    // SAFETY: by the caller; `check` has compared all lengths.
    unsafe {
        match job.tiles.dtype {
            DType::F16 => gemm_format::<V, F16>(job, out),
            DType::Bf16 => gemm_format::<V, Bf16>(job, out),
            _ => gemm_format::<V, F32>(job, out),
        }
    }
}

/// # Safety
/// Lengths are as [`GemmF32::check`] demands, and there is a row; the machine has the instructions of
/// `V`.
#[inline(always)]
unsafe fn gemm_format<V: F32x16, F: FloatFormat>(job: &GemmF32<'_>, out: &mut [f32]) {
    if job.rows > ROWS {
        // SAFETY: by the caller.
        return unsafe { gemm_blocks::<V, F>(job, out) };
    }
    let count = job.tiles.count;
    let stream = job.prefetch_stream(tiles_per_block(job.rows) * LINE);
    let mut t = 0;
    while t < count {
        let together = tiles_per_block(job.rows).min(1 << (count - t).ilog2());
        let out = out[t * TILE..].as_mut_ptr();
        // SAFETY: each tile has k lines of 16 values; `x` has as many rows of k values as each block
        // takes, and `out` of 16 values per tile.
        unsafe {
            match (job.rows, together) {
                (1, 4) => block::<F, 4>(job, t, stream, out).run::<V, F, 1>(),
                (1, 2) => block::<F, 2>(job, t, stream, out).run::<V, F, 1>(),
                (2, 2) => block::<F, 2>(job, t, stream, out).run::<V, F, 2>(),
                (rows, _) => block::<F, 1>(job, t, stream, out).run_rows::<V, F>(rows),
            }
        }
        t += together;
    }
}

/// All rows and columns of T tiles from tile `t` on.
///
/// # Panics
/// When there are fewer, or they have another format.
#[inline(always)]
fn block<F: FloatFormat, const T: usize>(
    job: &GemmF32<'_>,
    t: usize,
    stream: PrefetchStream,
    out: *mut f32,
) -> Block<T> {
    let (k, column_bytes) = (job.tiles.cols, TILE * F::BYTES);
    let tiles = std::array::from_fn(|i| {
        let values = job.tiles.tile(t + i);
        assert_eq!(values.len(), k * column_bytes, "another format");
        values.as_ptr()
    });
    let prefetch = PrefetchLines {
        stream,
        distance: stream.distance() / T,
        jump: TileJump { at: job.tiles.stride, tiles: T },
        columns: PREFETCH_BYTES / column_bytes,
        first: 0,
        every: 1,
    };
    let (x, columns, stride) = (job.x.as_ptr(), 0..k, job.stride);
    Block { tiles, columns, x, k, is_first: true, out, stride, prefetch }
}

/// More rows than a block has: the blocks multiply some columns of a tile, one after another, then those
/// of up to [`SIDE_BY_SIDE`] tiles, before the next columns.
///
/// # Safety
/// As [`gemm_format`].
#[inline(always)]
unsafe fn gemm_blocks<V: F32x16, F: FloatFormat>(job: &GemmF32<'_>, out: &mut [f32]) {
    let (k, count) = (job.tiles.cols, job.tiles.count);
    let columns = COLUMN_BYTES / (TILE * F::BYTES);
    // Blocks of about equal size: a block of few rows has too few independent sums to hide latency.
    let blocks = job.rows.div_ceil(ROWS);
    let step = job.rows.div_ceil(blocks);
    let stream = job.prefetch_stream(SIDE_BY_SIDE * LINE);
    for first in (0..count).step_by(SIDE_BY_SIDE) {
        let tiles = first..count.min(first + SIDE_BY_SIDE);
        for from in (0..k).step_by(columns) {
            for t in tiles.clone() {
                for row in (0..job.rows).step_by(step) {
                    let to = out[row * job.stride + t * TILE..].as_mut_ptr();
                    let mut block = block::<F, 1>(job, t, stream, to);
                    block.x = job.x[row * k..].as_ptr();
                    block.is_first = from == 0;
                    block.columns = from..k.min(from + columns);
                    block.prefetch.jump.tiles = tiles.len();
                    (block.prefetch.first, block.prefetch.every) = (row / step, blocks);
                    // SAFETY: the tile has these columns; as many rows are left in `x`, and of 16
                    // values in `out`.
                    unsafe { block.run_rows::<V, F>(step.min(job.rows - row)) };
                }
            }
        }
    }
}
