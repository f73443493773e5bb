//! AVX2 with FMA and F16C.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

mod gemm;
mod lanes;

use super::*;
use crate::cpu::tile::TILE;
use crate::cpu::unpack;
use std::arch::x86_64::*;

super::kernels!(
    "avx2,fma,f16c",
    fma = true,
    lanes = lanes::Ymm,
    dot_tile = dot_tile,
    gemm = gemm::gemm,
    unpack = unpack_tile,
    reads_narrow = true,
);

fn dot_tile(tile: &QTile, acts: &Acts<'_>, out: &mut [f32]) {
    tile.check(acts, out);
    // SAFETY: reached only through this module's table, which `Isa` hands out only when the
    // machine has the features; `check` has compared all lengths.
    unsafe {
        match (tile.group(), tile.wide()) {
            (32, false) => dot_groups::<8, false>(tile, acts, out),
            (32, true) => dot_groups::<8, true>(tile, acts, out),
            _ => dot_groups::<4, false>(tile, acts, out),
        }
    }
}

/// `QUADS` = group length / 4.
///
/// # Safety
/// Lengths as `QTile::check` demands.
#[target_feature(enable = "avx2,fma")]
unsafe fn dot_groups<const QUADS: usize, const WIDE: bool>(
    tile: &QTile,
    acts: &Acts<'_>,
    out: &mut [f32],
) {
    let mut row = 0;
    while row < acts.rows {
        // SAFETY: rows `row..row + R` exist by the conditions; lengths by the caller.
        row += unsafe {
            match acts.rows - row {
                2.. => dot_rows::<QUADS, WIDE, 2>(tile, acts, row, out),
                _ => dot_rows::<QUADS, WIDE, 1>(tile, acts, row, out),
            }
        };
    }
}

/// Adds the four products of each lane's unsigned bytes of `w` and signed bytes of `x`.
/// Pairs are added in 16 bits, which holds two products of at most 128 · 127; wide bytes
/// are therefore halved, and the two halves multiplied apart.
#[inline]
#[target_feature(enable = "avx2")]
fn dot4<const WIDE: bool>(sum: __m256i, w: __m256i, x: __m256i) -> __m256i {
    let ones = _mm256_set1_epi16(1);
    let add = |sum, w| _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), ones));
    if !WIDE {
        return add(sum, w);
    }
    let half = _mm256_and_si256(_mm256_srli_epi16::<1>(w), _mm256_set1_epi8(0x7f));
    add(add(sum, half), _mm256_sub_epi8(w, half))
}

/// # Safety
/// Lengths as `QTile::check` demands, and `row + R <= acts.rows`.
#[target_feature(enable = "avx2,fma")]
unsafe fn dot_rows<const QUADS: usize, const WIDE: bool, const R: usize>(
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
    let mut acc = [[_mm256_setzero_ps(); 2]; R];
    for g in 0..groups {
        // SAFETY: g < groups, so all offsets stay below the lengths that `check` compared:
        // k·16 in q, groups·16 in scale and min, k per row in x, groups per row in d, s and sum.
        unsafe {
            let mut dot = [[_mm256_setzero_si256(); 2]; R];
            for (r, dot) in dot.iter_mut().enumerate() {
                *dot = [_mm256_set1_epi32(-tile.offset() * *sums.add(r * groups + g)); 2];
            }
            for c in 0..QUADS {
                let quad = g * QUADS + c;
                let line = q.add(quad * 4 * TILE);
                let w = [line, line.add(32)].map(|p| _mm256_loadu_si256(p.cast()));
                for (r, dot) in dot.iter_mut().enumerate() {
                    let four = x.add(r * acts.k + quad * 4).cast::<i32>().read_unaligned();
                    let four = _mm256_set1_epi32(four);
                    dot[0] = dot4::<WIDE>(dot[0], w[0], four);
                    dot[1] = dot4::<WIDE>(dot[1], w[1], four);
                }
            }
            for half in 0..2 {
                let w_scale = _mm256_loadu_ps(scale.add(g * TILE + half * 8));
                let w_min = _mm256_loadu_ps(min.add(g * TILE + half * 8));
                for r in 0..R {
                    let (dx, sx) = (*dx.add(r * groups + g), *sx.add(r * groups + g));
                    let both = _mm256_mul_ps(w_scale, _mm256_set1_ps(dx));
                    let dot = _mm256_cvtepi32_ps(dot[r][half]);
                    let sum = _mm256_fmadd_ps(dot, both, acc[r][half]);
                    acc[r][half] = _mm256_fmadd_ps(w_min, _mm256_set1_ps(sx), sum);
                }
            }
        }
    }
    for (r, acc) in acc.iter().enumerate() {
        let to = &mut out[(row + r) * TILE..(row + r + 1) * TILE];
        // SAFETY: `to` has 16 values.
        unsafe {
            _mm256_storeu_ps(to.as_mut_ptr(), acc[0]);
            _mm256_storeu_ps(to.as_mut_ptr().add(8), acc[1]);
        }
    }
    R
}

fn unpack_tile(view: &RowsView<'_>, to: &mut QTile) {
    // SAFETY: reached only through this module's table, as above.
    unsafe { unpack_body(view, to) }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn unpack_body(view: &RowsView<'_>, to: &mut QTile) {
    unpack::tile(view, to);
}
