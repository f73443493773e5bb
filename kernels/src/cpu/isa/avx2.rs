//! AVX2 with FMA and F16C.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

mod lanes;

use super::*;
use crate::cpu::packed::Group;
use crate::cpu::tile::{Step, TILE};
use crate::cpu::unpack;
use std::arch::x86_64::*;

super::kernels!(
    "avx2,fma,f16c",
    fma = true,
    lanes = lanes::Ymm,
    quant_tiles = quant_tiles,
    float_tiles = float_tiles,
    quantize = quantize_row,
    unpack = unpack_tile,
    reads_narrow = true,
);

fn quant_tiles(job: &QuantJob<'_>, out: &mut [f32], scratch: &mut KernelScratch) {
    // SAFETY: reached only through this module's table, which `Isa` hands out only when the
    // machine has the features.
    unsafe { quant_body(job, out, scratch) }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn quant_body(job: &QuantJob<'_>, out: &mut [f32], scratch: &mut KernelScratch) {
    tile::tiles::<true>(job, out, scratch, |group, step, sum| match step.wide {
        false => add_group::<false>(group, step, sum),
        true => add_group::<true>(group, step, sum),
    });
}

/// One [`Step`].
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn add_group<const WIDE: bool>(group: &Group, step: &Step<'_>, sum: &mut [f32; TILE]) {
    let quads = step.x.q.as_chunks::<4>().0;
    let parts = if step.halves { 2 } else { 1 };
    let len = 8 / parts;
    let mut acc = [load(&sum[..8]), load(&sum[8..])];
    for part in 0..parts {
        let mut dot = [_mm256_set1_epi32(step.start[part]); 2];
        for (line, four) in group.q.iter().zip(quads).skip(part * len).take(len) {
            let four = _mm256_set1_epi32(i32::from_le_bytes(four.map(i8::cast_unsigned)));
            for (half, dot) in dot.iter_mut().enumerate() {
                // SAFETY: a line has 64 bytes.
                let w = unsafe { _mm256_load_si256(line.as_ptr().add(half * 32).cast()) };
                *dot = dot4::<WIDE>(*dot, w, four);
            }
        }
        for half in 0..2 {
            let scale = load(&group.scale[part][half * 8..]);
            let both = _mm256_mul_ps(scale, _mm256_set1_ps(step.d));
            acc[half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot[half]), both, acc[half]);
        }
    }
    for (half, mut acc) in acc.into_iter().enumerate() {
        if step.has_minimum {
            acc = _mm256_fmadd_ps(load(&group.min[half * 8..]), _mm256_set1_ps(step.x.s), acc);
        }
        let to = &mut sum[half * 8..half * 8 + 8];
        // SAFETY: `to` has 8 values.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), acc) };
    }
}

/// The first 8 values.
#[inline]
#[target_feature(enable = "avx2")]
fn load(from: &[f32]) -> __m256 {
    let from = &from[..8];
    // SAFETY: `from` has 8 values.
    unsafe { _mm256_loadu_ps(from.as_ptr()) }
}

fn quantize_row(x: &[f32], kind: quantize::ActKind, out: &mut [ActBlock]) {
    #[target_feature(enable = "avx2,fma,f16c")]
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

#[target_feature(enable = "avx2,fma,f16c")]
fn float_body(job: &FloatJob<'_>, out: &mut [f32]) {
    tile::float_tiles::<true>(job, out);
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

fn unpack_tile(view: &RowsView<'_>, to: &mut [u8]) {
    // SAFETY: reached only through this module's table, as above.
    unsafe { unpack_body(view, to) }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn unpack_body(view: &RowsView<'_>, to: &mut [u8]) {
    unpack::tile(view, to);
}
