//! Float weights in blocks of a few rows × one, two or four tiles; the stored values are converted as
//! they are read.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

use crate::cpu::loops::gemm_args::GemmF32;
use crate::cpu::loops::prefetch_stream::PrefetchStream;
use crate::cpu::packed::layout::LINE;
use crate::cpu::packed::layout::TILE;
use crate::cpu::simd::f32x16::F32x16;
use crate::cpu::simd::prefetch::prefetch_line;
use crate::quant::DType;

/// Rows of a register block.
pub(crate) const ROWS: usize = 6;
/// Most rows with which reading the weights takes longer than multiplying them.
const DIRECT_ROWS: usize = 3;

/// Tiles side by side: each sum waits for itself, so that few rows need many.
const fn tiles_per_block(rows: usize) -> usize {
    match rows {
        1 => 4,
        2 | 3 => 2,
        _ => 1,
    }
}

/// A stored float format.
trait Float {
    const BYTES: usize;

    /// 16 values.
    ///
    /// # Safety
    /// As [`F32x16`] demands.
    unsafe fn load<V: F32x16>(from: *const u8) -> V;
}

macro_rules! floats {
    ($($name:ident: $bytes:literal, $load:ident;)*) => {$(
        struct $name;
        impl Float for $name {
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

/// The product of float tiles; every sum runs over the columns in order.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn gemm_f32<V: F32x16>(job: &GemmF32<'_>, out: &mut [f32]) {
    job.check(out);
    // SAFETY: by the caller; `check` has compared all lengths.
    unsafe {
        match job.tiles.dtype {
            DType::F16 => of::<V, F16>(job, out),
            DType::Bf16 => of::<V, Bf16>(job, out),
            _ => of::<V, F32>(job, out),
        }
    }
}

/// Some rows times T tiles.
struct Block<const T: usize> {
    tiles: [*const u8; T],
    /// From a tile to the next.
    tile_stride: usize,
    ahead: PrefetchStream,
    x: *const f32,
    k: usize,
    out: *mut f32,
    stride: usize,
}

/// # Safety
/// Lengths as [`GemmF32::check`] demands, and the machine has the instructions of `V`.
#[inline(always)]
unsafe fn of<V: F32x16, F: Float>(job: &GemmF32<'_>, out: &mut [f32]) {
    let (k, count) = (job.tiles.cols, job.tiles.count);
    let (stride, tile_stride) = (job.stride, job.tiles.stride);
    let ahead = job.prefetch_stream(tiles_per_block(job.rows) * LINE);
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
            // SAFETY: the tiles have k lines of 16 values; `rows` rows of k values are left in `x`,
            // and of 16 values per tile in `out`; several tiles are taken of as few rows as match.
            unsafe {
                match together {
                    1 => {
                        let tiles = [tile(t)];
                        Block { tiles, tile_stride, ahead, x, k, out, stride }.of::<V, F>(rows);
                    }
                    2 => {
                        let tiles = [tile(t), tile(t + 1)];
                        Block { tiles, tile_stride, ahead, x, k, out, stride }.few::<V, F>(rows);
                    }
                    _ => {
                        let tiles = [tile(t), tile(t + 1), tile(t + 2), tile(t + 3)];
                        Block { tiles, tile_stride, ahead, x, k, out, stride }.rows::<V, F, 1>();
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
    unsafe fn of<V: F32x16, F: Float>(&self, rows: usize) {
        // SAFETY: by the caller.
        unsafe {
            match rows {
                ..=DIRECT_ROWS => self.few::<V, F>(rows),
                4 => self.rows::<V, F, 4>(),
                5 => self.rows::<V, F, 5>(),
                _ => self.rows::<V, F, 6>(),
            }
        }
    }

    /// # Safety
    /// As [`Block::of`] for at most [`DIRECT_ROWS`] rows.
    #[inline(always)]
    unsafe fn few<V: F32x16, F: Float>(&self, rows: usize) {
        // SAFETY: by the caller.
        unsafe {
            match rows {
                1 => self.rows::<V, F, 1>(),
                2 => self.rows::<V, F, 2>(),
                _ => self.rows::<V, F, 3>(),
            }
        }
    }

    /// # Safety
    /// As [`Block::of`] for R rows.
    #[inline(always)]
    unsafe fn rows<V: F32x16, F: Float, const R: usize>(&self) {
        // SAFETY: by the caller.
        unsafe {
            let mut acc = [[V::splat(0.0); T]; R];
            for i in 0..self.k {
                let at = i * TILE * F::BYTES;
                let asks = R <= DIRECT_ROWS && at.is_multiple_of(LINE);
                for (t, tile) in self.tiles.iter().enumerate() {
                    if asks {
                        let at = self.ahead.of::<T>(*tile, (at, self.tile_stride));
                        prefetch_line(at, self.ahead.prefetch_hint);
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
