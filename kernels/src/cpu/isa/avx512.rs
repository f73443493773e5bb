//! AVX-512 with VNNI.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

mod gemm;
mod lanes;
mod unpack;

use super::*;
use crate::cpu::tile::TILE;
use std::arch::x86_64::*;

super::kernels!(
    "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c",
    fma = true,
    lanes = lanes::Zmm,
    dot_tile = dot_tile,
    gemm = gemm::gemm,
    unpack = unpack::unpack,
    reads_narrow = true,
);

fn dot_tile(tile: &QTile, acts: &Acts<'_>, out: &mut [f32]) {
    tile.check(acts, out);
    // SAFETY: reached only through this module's table, which `Isa` hands out only when the
    // machine has the features; `check` has compared all lengths.
    unsafe {
        match tile.group() {
            32 => dot_groups::<8>(tile, acts, out),
            _ => dot_groups::<4>(tile, acts, out),
        }
    }
}

/// `QUADS` = group length / 4.
///
/// # Safety
/// Lengths as `QTile::check` demands.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
unsafe fn dot_groups<const QUADS: usize>(tile: &QTile, acts: &Acts<'_>, out: &mut [f32]) {
    let mut row = 0;
    while row < acts.rows {
        // SAFETY: rows `row..row + R` exist by the conditions; lengths by the caller.
        row += unsafe {
            match acts.rows - row {
                6.. => dot_rows::<QUADS, 6>(tile, acts, row, out),
                4.. => dot_rows::<QUADS, 4>(tile, acts, row, out),
                2.. => dot_rows::<QUADS, 2>(tile, acts, row, out),
                _ => dot_rows::<QUADS, 1>(tile, acts, row, out),
            }
        };
    }
}

/// # Safety
/// Lengths as `QTile::check` demands, and `row + R <= acts.rows`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
unsafe fn dot_rows<const QUADS: usize, const R: usize>(
    tile: &QTile,
    acts: &Acts<'_>,
    row: usize,
    out: &mut [f32],
) -> usize {
    let groups = tile.groups();
    let x = acts.q[row * acts.k..].as_ptr();
    let (dx, sx) = (acts.d[row * groups..].as_ptr(), acts.s[row * groups..].as_ptr());
    let sums = acts.sum[row * groups..].as_ptr();
    let (q, scale, min) = (tile.q.as_ptr(), tile.scale.as_ptr(), tile.min.as_ptr());
    let mut acc = [_mm512_setzero_ps(); R];
    for g in 0..groups {
        // SAFETY: g < groups, so all offsets stay below the lengths that `check` compared:
        // k·16 in q, groups·16 in scale and min, k per row in x, groups per row in d, s and sum.
        unsafe {
            let mut dot = [_mm512_setzero_si512(); R];
            for (r, dot) in dot.iter_mut().enumerate() {
                *dot = _mm512_set1_epi32(-tile.offset() * *sums.add(r * groups + g));
            }
            for c in 0..QUADS {
                let quad = g * QUADS + c;
                let w = _mm512_loadu_si512(q.add(quad * 4 * TILE).cast());
                for (r, dot) in dot.iter_mut().enumerate() {
                    let four = x.add(r * acts.k + quad * 4).cast::<i32>().read_unaligned();
                    *dot = _mm512_dpbusd_epi32(*dot, w, _mm512_set1_epi32(four));
                }
            }
            let w_scale = _mm512_loadu_ps(scale.add(g * TILE));
            let w_min = _mm512_loadu_ps(min.add(g * TILE));
            for r in 0..R {
                let both = _mm512_mul_ps(w_scale, _mm512_set1_ps(*dx.add(r * groups + g)));
                acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[r]), both, acc[r]);
                let sum = _mm512_set1_ps(*sx.add(r * groups + g));
                acc[r] = _mm512_fmadd_ps(w_min, sum, acc[r]);
            }
        }
    }
    for (r, acc) in acc.iter().enumerate() {
        let to = &mut out[(row + r) * TILE..(row + r + 1) * TILE];
        // SAFETY: `to` has 16 values.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), *acc) };
    }
    R
}
