//! Few rows: every line of a tile is read once and unpacked in registers, for all rows.

use super::factors::{Factors, Units};
use super::load_group::{TileStart, last_half_shift, tile_start};
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
        let block = Block { x, groups, out, stride, prefetch };
        // SAFETY: the tile has `groups` groups of the format; there are R rows of as many blocks;
        // row r has 16 values at `out + r·stride`.
        unsafe {
            match job.rows {
                1 => rows::<F, 1>(tile, &block),
                2 => rows::<F, 2>(tile, &block),
                3 => rows::<F, 3>(tile, &block),
                4 => rows::<F, 4>(tile, &block),
                5 => rows::<F, 5>(tile, &block),
                6 => rows::<F, 6>(tile, &block),
                7 => rows::<F, 7>(tile, &block),
                8 => rows::<F, 8>(tile, &block),
                rows => unreachable!("{rows} rows are unpacked in pairs"),
            }
        }
    }
}

/// Activations and output of a tile, and what is prefetched while it is read.
struct Block {
    x: *const Q8Block,
    /// Blocks from one row of `x` to the next.
    groups: usize,
    out: *mut f32,
    /// Values from one row of `out` to the next.
    stride: usize,
    prefetch: PrefetchStream,
}

/// # Safety
/// The tile has `groups` groups; `x` has R rows of `groups` blocks; `out` has 16 values at every
/// one of R multiples of `stride`.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,f16c")]
unsafe fn rows<F: Format, const R: usize>(tile: TileStart, block: &Block) {
    let Block { x, groups, out, stride, .. } = *block;
    let mut acc = [_mm512_setzero_ps(); R];
    for first in (0..groups).step_by(F::GROUPS) {
        // SAFETY: the groups exist, by the caller.
        unsafe {
            if F::GROUPS == 1 {
                add_group::<F, R>(tile, Units::none(), first, block, &mut acc);
                continue;
            }
            let units = tile.units::<F>(first);
            let mut partial = [_mm512_setzero_ps(); R];
            for g in first..groups.min(first + F::GROUPS) {
                add_group::<F, R>(tile, units, g, block, &mut partial);
            }
            for (r, (acc, partial)) in acc.iter_mut().zip(partial).enumerate() {
                let d = _mm512_set1_ps((*x.add(r * groups + first)).d);
                *acc = _mm512_fmadd_ps(partial, d, *acc);
            }
        }
    }
    for (r, acc) in acc.iter().enumerate() {
        // SAFETY: 16 values are there, by the caller.
        unsafe { _mm512_storeu_ps(out.add(r * stride), *acc) };
    }
}

/// Adds group `g` to the sums of R rows.
///
/// # Safety
/// As [`rows`], and the group exists.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,f16c")]
unsafe fn add_group<F: Format, const R: usize>(
    tile: TileStart,
    units: Units,
    g: usize,
    block: &Block,
    sums: &mut [__m512; R],
) {
    tile.prefetch::<F>(g, block.prefetch);
    // SAFETY: by the caller.
    unsafe {
        let w = match F::TABLE.is_some() {
            true => tile.lines::<F>(g),
            false => tile.shifted::<F>(g),
        };
        let factors = tile.factors::<F>(g, units);
        for (r, sum) in sums.iter_mut().enumerate() {
            let x = &*block.x.add(r * block.groups + g);
            if F::HALVES {
                let first = add::<F, 0, 4>(&w, &factors, x, *sum);
                *sum = add::<F, 4, 8>(&w, &factors, x, first);
            } else {
                *sum = add::<F, 0, 8>(&w, &factors, x, *sum);
            }
        }
    }
}

/// Adds quads `FROM .. TO`, a group or a half of it: `sum += scale·d·dot`, then `sum += min·s`. For super-blocks d is 1 here; their
/// scale is multiplied at the end.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn add<F: Format, const FROM: usize, const TO: usize>(
    w: &[__m512i; 8],
    factors: &Factors,
    x: &Q8Block,
    sum: __m512,
) -> __m512 {
    let half = FROM / 4;
    let scale = match F::GROUPS {
        1 => _mm512_mul_ps(factors.scale[half], _mm512_set1_ps(x.d)),
        _ => factors.scale[half],
    };
    let dot = _mm512_cvtepi32_ps(dot::<F, FROM, TO>(w, x));
    let sum = _mm512_fmadd_ps(dot, scale, sum);
    if !F::MIN {
        return sum;
    }
    let s = match F::HALVES {
        true => _mm512_cvtepi32_ps(_mm512_set1_epi32(x.start[half])),
        false => _mm512_set1_ps(x.s),
    };
    _mm512_fmadd_ps(factors.min[half], s, sum)
}

/// The integer sums of quads `FROM .. TO`, in two dependency chains to hide latency.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dot<F: Format, const FROM: usize, const TO: usize>(w: &[__m512i; 8], x: &Q8Block) -> __m512i {
    let start = match F::HAS_ZERO_POINT {
        true => _mm512_set1_epi32(F::start(x, FROM)),
        false => _mm512_setzero_si512(),
    };
    // The integers of the last half may be shifted to the left; then it has a chain of its own.
    let shift = if F::TABLE.is_some() { 0 } else { last_half_shift::<F>() };
    let is_shifted = shift > 0 && FROM == 4;
    let mut first = if is_shifted { _mm512_setzero_si512() } else { start };
    let mut second = _mm512_setzero_si512();
    // A 32-bit load: assembling four bytes compiles to a call that spills all weight registers.
    let (quads, half) = ((&raw const x.q).cast::<i32>(), (TO - FROM) / 2);
    for i in FROM..FROM + half {
        // SAFETY: a block starts with its 8 quads, aligned for 32-bit integers.
        let (a, b) = unsafe { (*quads.add(i), *quads.add(i + half)) };
        first = _mm512_dpbusd_epi32(first, w[i], _mm512_set1_epi32(a));
        second = _mm512_dpbusd_epi32(second, w[i + half], _mm512_set1_epi32(b));
    }
    let right = |sum| _mm512_sra_epi32(sum, _mm_cvtsi32_si128(shift.cast_signed()));
    match (shift > 0, is_shifted, TO == 8) {
        (true, true, _) => _mm512_add_epi32(right(_mm512_add_epi32(first, second)), start),
        (true, _, true) => _mm512_add_epi32(first, right(second)),
        _ => _mm512_add_epi32(first, second),
    }
}
