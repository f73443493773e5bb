//! NEON as every AArch64 has it, without the dot-product extension.
#![expect(
    unsafe_code,
    reason = "intrinsics, and calls into code compiled for more features than the crate"
)]

use super::*;
use crate::cpu::gemm::Gemm;
use crate::cpu::tile::TILE;
use crate::cpu::unpack;
use std::arch::aarch64::*;

super::kernels!(
    "neon",
    fma = true,
    lanes = lanes::Plain<true>,
    dot_tile = dot_tile,
    gemm = gemm,
    unpack = unpack_tile,
    reads_narrow = false,
);

fn unpack_tile(view: &RowsView<'_>, to: &mut QTile) {
    // SAFETY: reached only through this module's table, which `Isa` hands out only when the
    // machine has NEON.
    unsafe { unpack_body(view, to) }
}

#[target_feature(enable = "neon")]
fn unpack_body(view: &RowsView<'_>, to: &mut QTile) {
    unpack::tile(view, to);
}

fn gemm(g: &Gemm<'_>, c: &mut [f32]) {
    // SAFETY: reached only through this module's table, as above.
    unsafe { gemm_body(g, c) }
}

#[target_feature(enable = "neon")]
fn gemm_body(g: &Gemm<'_>, c: &mut [f32]) {
    crate::cpu::gemm::body::<true>(g, c);
}

fn dot_tile(tile: &QTile, acts: &Acts<'_>, out: &mut [f32]) {
    tile.check(acts, out);
    for row in 0..acts.rows {
        // SAFETY: reached only through this module's table, as above; `check` has compared
        // all lengths, and `row` exists.
        unsafe { dot_row(tile, acts, row, &mut out[row * TILE..(row + 1) * TILE]) };
    }
}

/// # Safety
/// Lengths as `QTile::check` demands, `row < acts.rows`, and `out` has 16 values.
#[target_feature(enable = "neon")]
unsafe fn dot_row(tile: &QTile, acts: &Acts<'_>, row: usize, out: &mut [f32]) {
    let (groups, quads) = (tile.groups(), tile.group() / 4);
    let x = acts.q[row * acts.k..].as_ptr();
    let (scale, min) = (tile.scale.as_ptr(), tile.min.as_ptr());
    let mut acc = [vdupq_n_f32(0.0); 4];
    for g in 0..groups {
        let (d, s) = (acts.d[row * groups + g], acts.s[row * groups + g]);
        let start = -tile.offset() * acts.sum[row * groups + g];
        // SAFETY: g < groups, so all offsets stay below the lengths that `check` compared:
        // k·16 in q, groups·16 in scale and min, k per row in x.
        unsafe {
            let mut dot = [vdupq_n_s32(start); 4];
            for quad in g * quads..(g + 1) * quads {
                let four = x.add(quad * 4).cast::<i32>().read_unaligned();
                // The four activations twice, as 16 bits, for two weight rows.
                let four = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four)));
                for (part, dot) in dot.iter_mut().enumerate() {
                    let w = vld1q_u8(tile.q.as_ptr().add(quad * 4 * TILE + part * 16));
                    *dot = vaddq_s32(*dot, four_rows(w, four));
                }
            }
            for part in 0..4 {
                let at = g * TILE + part * 4;
                let both = vmulq_n_f32(vld1q_f32(scale.add(at)), d);
                acc[part] = vfmaq_f32(acc[part], vcvtq_f32_s32(dot[part]), both);
                acc[part] = vfmaq_f32(acc[part], vld1q_f32(min.add(at)), vdupq_n_f32(s));
            }
        }
    }
    for (acc, to) in acc.into_iter().zip(out.as_chunks_mut::<4>().0) {
        // SAFETY: `to` has 4 values.
        unsafe { vst1q_f32(to.as_mut_ptr(), acc) };
    }
}

/// Sums of four products for each of four rows: products in 32 bits, since those of wide
/// weights do not fit in 16, then pairs of pairs.
#[inline]
#[target_feature(enable = "neon")]
fn four_rows(w: uint8x16_t, four: int16x8_t) -> int32x4_t {
    let two_rows = |w: uint8x8_t| {
        let w = vreinterpretq_s16_u16(vmovl_u8(w));
        let first = vmull_s16(vget_low_s16(w), vget_low_s16(four));
        let second = vmull_high_s16(w, four);
        vpaddq_s32(first, second)
    };
    vpaddq_s32(two_rows(vget_low_u8(w)), two_rows(vget_high_u8(w)))
}
