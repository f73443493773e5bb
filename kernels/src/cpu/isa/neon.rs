//! NEON as every AArch64 has it, without the dot-product extension.
#![expect(
    unsafe_code,
    reason = "intrinsics, and calls into code compiled for more features than the crate"
)]

use super::*;
use crate::cpu::packed::Group;
use crate::cpu::tile::{Step, TILE};
use crate::cpu::unpack;
use std::arch::aarch64::*;

super::kernels!(
    "neon",
    fma = true,
    lanes = lanes::Plain<true>,
    quant_tiles = quant_tiles,
    float_tiles = float_tiles,
    quantize = quantize_row,
    unpack = unpack_tile,
    reads_narrow = false,
);

fn unpack_tile(view: &RowsView<'_>, to: &mut [u8]) {
    // SAFETY: reached only through this module's table, which `Isa` hands out only when the
    // machine has NEON.
    unsafe { unpack_body(view, to) }
}

#[target_feature(enable = "neon")]
fn unpack_body(view: &RowsView<'_>, to: &mut [u8]) {
    unpack::tile(view, to);
}

fn quantize_row(x: &[f32], kind: quantize::ActKind, out: &mut [ActBlock]) {
    #[target_feature(enable = "neon")]
    fn body(x: &[f32], kind: quantize::ActKind, out: &mut [ActBlock]) {
        quantize::row(x, kind, out);
    }
    // SAFETY: reached only through this module's table, as above.
    unsafe { body(x, kind, out) }
}

fn float_tiles(job: &FloatJob<'_>, out: &mut [f32]) {
    // SAFETY: reached only through this module's table, as above.
    unsafe { float_body(job, out) }
}

#[target_feature(enable = "neon")]
fn float_body(job: &FloatJob<'_>, out: &mut [f32]) {
    tile::float_tiles::<true>(job, out);
}

fn quant_tiles(job: &QuantJob<'_>, out: &mut [f32], scratch: &mut KernelScratch) {
    // SAFETY: reached only through this module's table, as above.
    unsafe { quant_body(job, out, scratch) }
}

#[target_feature(enable = "neon")]
fn quant_body(job: &QuantJob<'_>, out: &mut [f32], scratch: &mut KernelScratch) {
    tile::tiles::<true>(job, out, scratch, |group, step, sum| add_group(group, step, sum));
}

/// One [`Step`].
#[inline]
#[target_feature(enable = "neon")]
fn add_group(group: &Group, step: &Step<'_>, sum: &mut [f32; TILE]) {
    let quads = step.x.q.as_chunks::<4>().0;
    let parts = if step.halves { 2 } else { 1 };
    let len = 8 / parts;
    for part in 0..parts {
        let mut dot = [vdupq_n_s32(step.start[part]); 4];
        for (line, four) in group.q.iter().zip(quads).skip(part * len).take(len) {
            let four = i32::from_le_bytes(four.map(i8::cast_unsigned));
            // The four activations twice, as 16 bits, for two weight rows.
            let four = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four)));
            for (line, dot) in line.as_chunks::<16>().0.iter().zip(&mut dot) {
                // SAFETY: `line` has 16 bytes.
                let w = unsafe { vld1q_u8(line.as_ptr()) };
                *dot = vaddq_s32(*dot, four_rows(w, four));
            }
        }
        let scales = group.scale[part].as_chunks::<4>().0;
        for ((sum, scale), dot) in sum.as_chunks_mut::<4>().0.iter_mut().zip(scales).zip(dot) {
            // SAFETY: all have 4 values.
            unsafe {
                let both = vmulq_n_f32(vld1q_f32(scale.as_ptr()), step.d);
                let acc = vfmaq_f32(vld1q_f32(sum.as_ptr()), vcvtq_f32_s32(dot), both);
                vst1q_f32(sum.as_mut_ptr(), acc);
            }
        }
    }
    if step.has_minimum {
        for (sum, min) in sum.iter_mut().zip(&group.min) {
            *sum = min.mul_add(step.x.s, *sum);
        }
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
