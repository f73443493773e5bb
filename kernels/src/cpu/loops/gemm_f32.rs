//! Matmuls of float weights in blocks of a few rows × one, two or four tiles. Stored values are
//! converted as they are read.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

use crate::cpu::loops::gemm_args::GemmF32;
use crate::cpu::loops::prefetch_stream::PrefetchStream;
use crate::cpu::packed::layout::{LINE, TILE};
use crate::cpu::simd::f32x16::F32x16;
use crate::cpu::simd::prefetch::prefetch_line;
use crate::quant::DType;

/// Rows of a register block.
pub(crate) const ROWS: usize = 6;
/// Most rows for which the kernel is bound by reading weights rather than by arithmetic.
const DIRECT_ROWS: usize = 3;

/// Tiles of a block. Each sum is a dependency chain, so blocks of few rows need more tiles to hide
/// latency.
const fn tiles_per_block(rows: usize) -> usize {
    match rows {
        1 => 4,
        2 | 3 => 2,
        _ => 1,
    }
}

/// A stored float format.
trait FloatFormat {
    const BYTES: usize;

    /// Loads 16 values.
    ///
    /// # Safety
    /// As [`F32x16`] demands.
    unsafe fn load<V: F32x16>(from: *const u8) -> V;
}

macro_rules! floats {
    ($($name:ident: $bytes:literal, $load:ident;)*) => {$(
        struct $name;
        impl FloatFormat for $name {
            const BYTES: usize = $bytes;
            #[inline(always)]
            unsafe fn load<V: F32x16>(from: *const u8) -> V {
                // SAFETY: by the caller.
                unsafe { V::$load(from.cast()) }
            }
        }
    )*};
}

floats! {
    F32: 4, load;
    F16: 2, load_f16;
    Bf16: 2, load_bf16;
}

/// Multiplies float tiles; every sum runs over the columns in order.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn gemm_f32<V: F32x16>(job: &GemmF32<'_>, out: &mut [f32]) {
    job.check(out);
    // SAFETY: by the caller; `check` has compared all lengths.
    unsafe {
        match job.tiles.dtype {
            DType::F16 => gemm_format::<V, F16>(job, out),
            DType::Bf16 => gemm_format::<V, Bf16>(job, out),
            _ => gemm_format::<V, F32>(job, out),
        }
    }
}

/// A block: some rows × T tiles.
struct Block<const T: usize> {
    tiles: [*const u8; T],
    /// Bytes from one tile to the next.
    tile_stride: usize,
    prefetch: PrefetchStream,
    x: *const f32,
    k: usize,
    out: *mut f32,
    stride: usize,
}

/// # Safety
/// Lengths as [`GemmF32::check`] demands, and the machine has the instructions of `V`.
#[inline(always)]
unsafe fn gemm_format<V: F32x16, F: FloatFormat>(job: &GemmF32<'_>, out: &mut [f32]) {
    let (k, count) = (job.tiles.cols, job.tiles.count);
    let (stride, tile_stride) = (job.stride, job.tiles.stride);
    let prefetch = job.prefetch_stream(tiles_per_block(job.rows) * LINE);
    let tile = |t: usize| {
        let values = job.tiles.tile(t);
        assert_eq!(values.len(), k * TILE * F::BYTES, "another format");
        values.as_ptr()
    };
    let mut t = 0;
    while t < count {
        let together = tiles_per_block(job.rows).min(1 << (count - t).ilog2());
        for row in (0..job.rows).step_by(ROWS) {
            let (x, rows) = (job.x[row * k..].as_ptr(), job.rows - row);
            let out = out[row * stride + t * TILE..].as_mut_ptr();
            // SAFETY: each tile has k lines of 16 values; `x` has `rows` more rows of k values, and
            // `out` as many of 16 values per tile; blocks of several tiles have no more rows than
            // the functions take.
            unsafe {
                match together {
                    1 => {
                        let tiles = [tile(t)];
                        Block { tiles, tile_stride, prefetch, x, k, out, stride }.run::<V, F>(rows);
                    }
                    2 => {
                        let tiles = [tile(t), tile(t + 1)];
                        Block { tiles, tile_stride, prefetch, x, k, out, stride }
                            .run_few::<V, F>(rows);
                    }
                    _ => {
                        let tiles = [tile(t), tile(t + 1), tile(t + 2), tile(t + 3)];
                        Block { tiles, tile_stride, prefetch, x, k, out, stride }
                            .run_rows::<V, F, 1>();
                    }
                }
            }
        }
        t += together;
    }
}

impl<const T: usize> Block<T> {
    /// # Safety
    /// Each tile has `k` lines; min(`rows`, [`ROWS`]) rows of `k` values are at `x`, and as many of
    /// 16·T values, `stride` apart, at `out`; the machine has the instructions of `V`.
    #[inline(always)]
    unsafe fn run<V: F32x16, F: FloatFormat>(&self, rows: usize) {
        // SAFETY: by the caller.
        unsafe {
            match rows {
                ..=DIRECT_ROWS => self.run_few::<V, F>(rows),
                4 => self.run_rows::<V, F, 4>(),
                5 => self.run_rows::<V, F, 5>(),
                _ => self.run_rows::<V, F, 6>(),
            }
        }
    }

    /// # Safety
    /// As [`Block::run`] for at most [`DIRECT_ROWS`] rows.
    #[inline(always)]
    unsafe fn run_few<V: F32x16, F: FloatFormat>(&self, rows: usize) {
        // SAFETY: by the caller.
        unsafe {
            match rows {
                1 => self.run_rows::<V, F, 1>(),
                2 => self.run_rows::<V, F, 2>(),
                _ => self.run_rows::<V, F, 3>(),
            }
        }
    }

    /// # Safety
    /// As [`Block::run`] for R rows.
    #[inline(always)]
    unsafe fn run_rows<V: F32x16, F: FloatFormat, const R: usize>(&self) {
        // SAFETY: by the caller.
        unsafe {
            let mut acc = [[V::splat(0.0); T]; R];
            for i in 0..self.k {
                let at = i * TILE * F::BYTES;
                let prefetches = R <= DIRECT_ROWS && at.is_multiple_of(LINE);
                for (t, tile) in self.tiles.iter().enumerate() {
                    if prefetches {
                        let at = self.prefetch.address::<T>(*tile, (at, self.tile_stride));
                        prefetch_line(at, self.prefetch.prefetch_hint);
                    }
                    let w = F::load::<V>(tile.add(at));
                    for (r, acc) in acc.iter_mut().enumerate() {
                        acc[t] = V::splat(*self.x.add(r * self.k + i)).fma(w, acc[t]);
                    }
                }
            }
            for (r, acc) in acc.iter().enumerate() {
                for (t, acc) in acc.iter().enumerate() {
                    acc.store(self.out.add(r * self.stride + t * TILE));
                }
            }
        }
    }
}
