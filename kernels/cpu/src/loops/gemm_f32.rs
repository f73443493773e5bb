//! Matmuls of float weights in blocks of a few rows × one, two or four tiles. Stored values are
//! converted as they are read.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

mod block;

use crate::loops::gemm_args::GemmF32;
use crate::loops::prefetch_stream::PrefetchStream;
use crate::packed::layout::{LINE, TILE};
use crate::simd::f32x16::F32x16;
use crate::simd::prefetch::PrefetchHint;
use block::{Bf16, Block, F16, F32, FloatFormat, PREFETCH_LINES, PrefetchLines};
use lapwing_model::formats::DType;

/// Most rows of a register block.
pub(crate) const ROWS: usize = 6;

/// Bytes of a tile's columns that several blocks of rows multiply one after another: they stay in a
/// small second-level cache, and are enough for the first level's prefetcher.
const COLUMN_BYTES: usize = 64 << 10;

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
            DType::F32 => gemm_format::<V, F32>(job, out),
            dtype => unreachable!("{dtype} is no format of floats"),
        }
    }
}

/// # Safety
/// Lengths are as [`GemmF32::check`] demands, and there is a row; the machine has the instructions of
/// `V`.
#[inline(always)]
unsafe fn gemm_format<V: F32x16, F: FloatFormat>(job: &GemmF32<'_>, out: &mut [f32]) {
    let count = job.tiles.count;
    let stream = job.prefetch_stream(tiles_per_block(job.rows) * LINE);
    let mut t = 0;
    while t < count {
        let together = tiles_per_block(job.rows).min(1 << (count - t).ilog2());
        // SAFETY: each tile has k lines of 16 values; `x` has as many rows of k values as each block
        // takes, and `out` of 16 values per tile.
        unsafe {
            let to = out[t * TILE..].as_mut_ptr();
            match (job.rows, together) {
                (1, 4) => block::<F, 4>(job, t, stream, to).run::<V, F, 1>(),
                (1, 2) => block::<F, 2>(job, t, stream, to).run::<V, F, 1>(),
                (2, 2) => block::<F, 2>(job, t, stream, to).run::<V, F, 2>(),
                _ => tile_blocks::<V, F>(job, t, stream, out),
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
        hint: stream.prefetch_hint,
        tile_stride: job.tiles.stride,
        from: 0,
        every: PREFETCH_LINES / T * LINE / column_bytes,
    };
    let (x, columns, stride) = (job.x.as_ptr(), 0..k, job.stride);
    Block { tiles, columns, x, k, is_first: true, out, stride, prefetch }
}

/// Tile `t`. If there are several blocks of rows, they multiply some columns one after another before
/// the next columns, of which each prefetches a part. The first level has no room for them yet.
///
/// # Safety
/// As [`gemm_format`].
#[inline(always)]
unsafe fn tile_blocks<V: F32x16, F: FloatFormat>(
    job: &GemmF32<'_>,
    t: usize,
    stream: PrefetchStream,
    out: &mut [f32],
) {
    let (k, column) = (job.tiles.cols, TILE * F::BYTES);
    // Blocks of about equal size: a block of few rows has too few independent sums to hide latency.
    let blocks = job.rows.div_ceil(ROWS);
    let step = job.rows.div_ceil(blocks);
    let columns = if blocks == 1 { k } else { COLUMN_BYTES / column };
    for from in (0..k).step_by(columns) {
        for row in (0..job.rows).step_by(step) {
            let to = out[row * job.stride + t * TILE..].as_mut_ptr();
            let mut block = block::<F, 1>(job, t, stream, to);
            block.x = job.x[row * k..].as_ptr();
            if blocks > 1 {
                block.is_first = from == 0;
                block.columns = from..k.min(from + columns);
                let bytes = block.columns.len() * column;
                let part = row / step * bytes / blocks / LINE * LINE;
                let next = block.columns.end * column;
                block.prefetch.from = (next + part).saturating_sub(stream.distance());
                block.prefetch.every *= blocks;
                block.prefetch.hint = PrefetchHint::L2Only;
            }
            // SAFETY: the tile has these columns; as many rows are left in `x`, and of 16 values in
            // `out`.
            unsafe { block.run_rows::<V, F>(step.min(job.rows - row)) };
        }
    }
}
