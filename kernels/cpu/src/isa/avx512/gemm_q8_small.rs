//! Few rows: every line of a tile is read once and unpacked in registers, for all rows.

use super::load_group::{TileStart, tile_start};
use crate::loops::formats::Format;
use crate::loops::gemm_args::GemmQ8;
use crate::loops::prefetch_stream::PrefetchStream;
use crate::loops::quantize::Q8Block;
use crate::packed::layout::TILE;
use std::arch::x86_64::*;

/// # Safety
/// The machine has the features, and lengths are as [`GemmQ8::check`] demands.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,f16c")]
pub(super) unsafe fn gemm<F: Format>(job: &GemmQ8<'_>, out: &mut [f32]) {
    let groups = job.weight.layout().groups();
    let stride = job.tiles.len() * TILE;
    let prefetch = job.prefetch_stream(F::GROUP_BYTES);
    for (t, tile) in job.tiles.clone().enumerate() {
        let tile = tile_start::<F>(&job.weight.tile(tile));
        let (x, out) = (job.x.as_ptr(), out[t * TILE..].as_mut_ptr());
        let block = Block { x, groups, out, stride };
        // SAFETY: the tile has `groups` groups of the format; there are R rows of as many blocks;
        // row r has 16 values at `out + r·stride`.
        unsafe {
            match job.rows {
                1 => rows::<F, 1>(tile, prefetch, &block),
                2 => rows::<F, 2>(tile, prefetch, &block),
                3 => rows::<F, 3>(tile, prefetch, &block),
                4 => rows::<F, 4>(tile, prefetch, &block),
                5 => rows::<F, 5>(tile, prefetch, &block),
                6 => rows::<F, 6>(tile, prefetch, &block),
                7 => rows::<F, 7>(tile, prefetch, &block),
                8 => rows::<F, 8>(tile, prefetch, &block),
                rows => unreachable!("{rows} rows are unpacked in pairs"),
            }
        }
    }
}

/// Activations and output of a tile.
struct Block {
    x: *const Q8Block,
    /// Blocks from one row of `x` to the next.
    groups: usize,
    out: *mut f32,
    /// Values from one row of `out` to the next.
    stride: usize,
}

/// # Safety
/// The tile has `groups` groups; `x` has R rows of `groups` blocks; `out` has 16 values at every
/// one of R multiples of `stride`.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,f16c")]
unsafe fn rows<F: Format, const R: usize>(
    tile: TileStart,
    prefetch: PrefetchStream,
    block: &Block,
) {
    let Block { x, groups, out, stride } = *block;
    let mut acc = [_mm512_setzero_ps(); R];
    let mut partial = [_mm512_setzero_ps(); R];
    for g in 0..groups {
        tile.prefetch::<F>(g, prefetch);
        // SAFETY: g < groups, by the caller.
        unsafe {
            let w = tile.lines::<F>(g);
            let scales = tile.scales::<F>(g);
            let minimums = match F::HALVES && F::MIN {
                true => tile.half_minimums::<F>(g),
                false => [_mm512_setzero_ps(); 2],
            };
            for r in 0..R {
                let x = &*x.add(r * groups + g);
                if F::GROUPS == 1 {
                    let d = _mm512_set1_ps(x.d);
                    if F::HALVES {
                        let halves = [dot::<F, 0, 4>(&w, x), dot::<F, 4, 8>(&w, x)];
                        for (dot, scale) in halves.into_iter().zip(scales) {
                            let both = _mm512_mul_ps(scale, d);
                            acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), both, acc[r]);
                        }
                        continue;
                    }
                    let both = _mm512_mul_ps(scales[0], d);
                    let dot = _mm512_cvtepi32_ps(dot::<F, 0, 8>(&w, x));
                    acc[r] = _mm512_fmadd_ps(dot, both, acc[r]);
                    if F::MIN {
                        acc[r] = _mm512_fmadd_ps(scales[1], _mm512_set1_ps(x.s), acc[r]);
                    }
                    continue;
                }
                if F::HALVES {
                    let low = _mm512_cvtepi32_ps(dot::<F, 0, 4>(&w, x));
                    let high = _mm512_cvtepi32_ps(dot::<F, 4, 8>(&w, x));
                    for (half, dot) in [low, high].into_iter().enumerate() {
                        partial[r] = _mm512_fmadd_ps(dot, scales[half], partial[r]);
                        if F::MIN {
                            let sum = _mm512_set1_ps(x.half_sum(half));
                            partial[r] = _mm512_fmadd_ps(minimums[half], sum, partial[r]);
                        }
                    }
                } else {
                    let dot = _mm512_cvtepi32_ps(dot::<F, 0, 8>(&w, x));
                    partial[r] = _mm512_fmadd_ps(dot, scales[0], partial[r]);
                    partial[r] = _mm512_fmadd_ps(scales[1], _mm512_set1_ps(x.s), partial[r]);
                }
                if g % 8 == 7 {
                    acc[r] = _mm512_fmadd_ps(partial[r], _mm512_set1_ps(x.d), acc[r]);
                    partial[r] = _mm512_setzero_ps();
                }
            }
        }
    }
    for (r, acc) in acc.iter().enumerate() {
        // SAFETY: 16 values are there, by the caller.
        unsafe { _mm512_storeu_ps(out.add(r * stride), *acc) };
    }
}

/// The integer sums of quads `FROM .. TO`, in two dependency chains to hide latency.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dot<F: Format, const FROM: usize, const TO: usize>(w: &[__m512i; 8], x: &Q8Block) -> __m512i {
    let mut first = match F::HAS_ZERO_POINT {
        true => _mm512_set1_epi32(F::start(x, FROM)),
        false => _mm512_setzero_si512(),
    };
    let mut second = _mm512_setzero_si512();
    // A 32-bit load: assembling four bytes compiles to a call that spills all weight registers.
    let (quads, half) = ((&raw const x.q).cast::<i32>(), (TO - FROM) / 2);
    for i in FROM..FROM + half {
        // SAFETY: a block starts with its 8 quads, aligned for 32-bit integers.
        let (a, b) = unsafe { (*quads.add(i), *quads.add(i + half)) };
        first = _mm512_dpbusd_epi32(first, w[i], _mm512_set1_epi32(a));
        second = _mm512_dpbusd_epi32(second, w[i + half], _mm512_set1_epi32(b));
    }
    _mm512_add_epi32(first, second)
}
