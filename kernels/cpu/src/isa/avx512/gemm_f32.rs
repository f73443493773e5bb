//! Matmuls of float weights in blocks of up to 12 rows × 2 tiles. Stored values are converted as
//! they are read.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

use crate::loops::gemm_args::GemmF32;
use crate::loops::prefetch_stream::PrefetchStream;
use crate::packed::layout::{LINE, TILE};
use crate::packed::tile::FloatTiles;
use crate::simd::prefetch::prefetch_line;
use lapwing_model::formats::DType;
use std::arch::x86_64::*;

/// Rows and tiles of a register block.
pub(super) const ROWS: usize = 12;
pub(super) const TILES: usize = 2;
/// Most rows for which the kernel is bound by reading weights rather than by arithmetic.
const DIRECT_ROWS: usize = 4;
/// Tiles of a block of so few rows. Each sum is a dependency chain, so few rows need many tiles to
/// hide latency.
const DIRECT_TILES: usize = 4;

pub(super) fn gemm_f32(job: &GemmF32<'_>, out: &mut [f32]) {
    job.check(out);
    if job.rows == 0 || out.is_empty() {
        return;
    }
    // SAFETY: reached only through the AVX-512 table, which `Isa` hands out only when the
    // machine has the features; `check` has compared all lengths.
    unsafe {
        match job.tiles.dtype {
            DType::F16 => gemm_format::<F16>(job, out),
            DType::Bf16 => gemm_format::<Bf16>(job, out),
            DType::F32 => gemm_format::<F32>(job, out),
            dtype => unreachable!("{dtype} is no format of floats"),
        }
    }
}

/// A stored float format.
trait FloatFormat {
    const BYTES: usize;

    /// Loads 16 values.
    ///
    /// # Safety
    /// The values exist, and the machine has AVX-512 and F16C.
    unsafe fn load(from: *const u8) -> __m512;
}

struct F16;
struct Bf16;
struct F32;

impl FloatFormat for F16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m512 {
        // SAFETY: by the caller.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
    }
}

impl FloatFormat for Bf16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m512 {
        // SAFETY: by the caller.
        unsafe {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        }
    }
}

impl FloatFormat for F32 {
    const BYTES: usize = 4;
    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m512 {
        // SAFETY: by the caller.
        unsafe { _mm512_loadu_ps(from.cast()) }
    }
}

/// A block: some rows × one, two or four tiles.
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
/// Lengths as [`GemmF32::check`] demands.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,f16c")]
unsafe fn gemm_format<F: FloatFormat>(job: &GemmF32<'_>, out: &mut [f32]) {
    let FloatTiles { cols: k, count, .. } = job.tiles;
    let stride = job.stride;
    let most = if job.rows <= DIRECT_ROWS { DIRECT_TILES } else { TILES };
    let (tile_stride, prefetch) = (job.tiles.stride, job.prefetch_stream(most * LINE));
    let tile = |t: usize| {
        let values = job.tiles.tile(t);
        assert_eq!(values.len(), k * TILE * F::BYTES, "another format");
        values.as_ptr()
    };
    let mut t = 0;
    while t < count {
        let together = if count - t < most { TILES.min(count - t) } else { most };
        for row in (0..job.rows).step_by(ROWS) {
            let (x, rows) = (job.x[row * k..].as_ptr(), job.rows - row);
            let out = out[row * stride + t * TILE..].as_mut_ptr();
            // SAFETY: the tiles have k lines of 16 values; `rows` rows of k values are left in
            // `x`, and of 16 values per tile in `out`; four tiles are taken of at most 4 rows.
            unsafe {
                match together {
                    1 => {
                        let tiles = [tile(t)];
                        Block { tiles, tile_stride, prefetch, x, k, out, stride }.run::<F>(rows);
                    }
                    2 => {
                        let tiles = [tile(t), tile(t + 1)];
                        Block { tiles, tile_stride, prefetch, x, k, out, stride }.run::<F>(rows);
                    }
                    _ => {
                        let tiles = [tile(t), tile(t + 1), tile(t + 2), tile(t + 3)];
                        Block { tiles, tile_stride, prefetch, x, k, out, stride }
                            .run_few::<F>(rows);
                    }
                }
            }
        }
        t += together;
    }
}

impl<const T: usize> Block<T> {
    /// # Safety
    /// Each tile has `k` lines; min(`rows`, 12) rows of `k` values are at `x`, and as many of
    /// 16·T values, `stride` apart, at `out`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,f16c")]
    unsafe fn run<F: FloatFormat>(&self, rows: usize) {
        // SAFETY: by the caller.
        unsafe {
            match rows {
                ..=DIRECT_ROWS => self.run_few::<F>(rows),
                5 => self.run_rows::<F, 5>(),
                6 => self.run_rows::<F, 6>(),
                7 => self.run_rows::<F, 7>(),
                8 => self.run_rows::<F, 8>(),
                9 => self.run_rows::<F, 9>(),
                10 => self.run_rows::<F, 10>(),
                11 => self.run_rows::<F, 11>(),
                _ => self.run_rows::<F, 12>(),
            }
        }
    }

    /// # Safety
    /// As [`Block::run`] for at most [`DIRECT_ROWS`] rows.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,f16c")]
    unsafe fn run_few<F: FloatFormat>(&self, rows: usize) {
        // SAFETY: by the caller.
        unsafe {
            match rows {
                1 => self.run_rows::<F, 1>(),
                2 => self.run_rows::<F, 2>(),
                3 => self.run_rows::<F, 3>(),
                _ => self.run_rows::<F, 4>(),
            }
        }
    }

    /// # Safety
    /// As [`Block::run`] for R rows.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,f16c")]
    unsafe fn run_rows<F: FloatFormat, const R: usize>(&self) {
        let mut acc = [[_mm512_setzero_ps(); T]; R];
        for i in 0..self.k {
            // SAFETY: i < k, by the caller.
            unsafe {
                let at = i * TILE * F::BYTES;
                if R <= DIRECT_ROWS && at.is_multiple_of(LINE) {
                    for tile in self.tiles {
                        let at = self.prefetch.address::<T>(tile, at, self.tile_stride);
                        prefetch_line(at, self.prefetch.prefetch_hint);
                    }
                }
                let w = self.tiles.map(|tile| F::load(tile.add(at)));
                for (r, acc) in acc.iter_mut().enumerate() {
                    let x = _mm512_set1_ps(*self.x.add(r * self.k + i));
                    for t in 0..T {
                        acc[t] = _mm512_fmadd_ps(x, w[t], acc[t]);
                    }
                }
            }
        }
        for (r, acc) in acc.iter().enumerate() {
            for (t, acc) in acc.iter().enumerate() {
                // SAFETY: by the caller.
                unsafe { _mm512_storeu_ps(self.out.add(r * self.stride + t * TILE), *acc) };
            }
        }
    }
}
