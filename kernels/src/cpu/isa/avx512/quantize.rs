//! Quantising activations: the values of [`crate::cpu::quantize::row`].
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

use crate::cpu::quantize::{ActKind, inverse_of, super_scale};
use crate::cpu::tile::ActBlock;
use crate::cpu::unpack;
use crate::quant::DType;
use std::arch::x86_64::*;

pub(super) fn quantize(x: &[f32], kind: ActKind, out: &mut [ActBlock]) {
    // SAFETY: reached only through the AVX-512 table, which `Isa` hands out only when the
    // machine has the features.
    unsafe {
        match kind {
            ActKind::Block(offset) => blocks::<false>(x, offset, out),
            ActKind::BlockSum => blocks::<true>(x, 0, out),
            ActKind::Super => super_blocks(x, out),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,f16c")]
fn blocks<const ROUNDED_SUM: bool>(x: &[f32], offset: i32, out: &mut [ActBlock]) {
    for (x, out) in x.as_chunks::<32>().0.iter().zip(out) {
        let v = load(x);
        let amax = _mm512_max_ps(_mm512_abs_ps(v[0]), _mm512_abs_ps(v[1]));
        let amax = _mm512_reduce_max_ps(amax);
        let sums = round(v, inverse_of(amax), &mut out.q);
        let (d, sum) = (amax / 127.0, sums[0] + sums[1]);
        out.d = half(d);
        out.s = if ROUNDED_SUM { half(d * sum as f32) } else { 0.0 };
        out.start = [-offset * sum, 0];
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,f16c")]
fn super_blocks(x: &[f32], out: &mut [ActBlock]) {
    let offset = unpack::offset(DType::Q6K);
    for (x, out) in x.as_chunks::<256>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        let (mut high, mut low) = (_mm512_setzero_ps(), _mm512_setzero_ps());
        for x in x.as_chunks::<32>().0 {
            let v = load(x);
            high = _mm512_max_ps(high, _mm512_max_ps(v[0], v[1]));
            low = _mm512_min_ps(low, _mm512_min_ps(v[0], v[1]));
        }
        let (high, low) = (_mm512_reduce_max_ps(high), _mm512_reduce_min_ps(low));
        let (d, inverse) = super_scale(x, high, low);
        for (x, out) in x.as_chunks::<32>().0.iter().zip(out) {
            let sums = round(load(x), inverse, &mut out.q);
            out.d = d;
            out.s = (sums[0] + sums[1]) as f32;
            out.start = [-offset * sums[0], -offset * sums[1]];
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(x: &[f32; 32]) -> [__m512; 2] {
    // SAFETY: there are 32 values.
    unsafe { [_mm512_loadu_ps(x.as_ptr()), _mm512_loadu_ps(x.as_ptr().add(16))] }
}

/// The nearest integers, ties to even, of `v · inverse`, cut to 8 bits, and the sum of each half.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn round(v: [__m512; 2], inverse: f32, q: &mut [i8; 32]) -> [i32; 2] {
    let inverse = _mm512_set1_ps(inverse);
    // What is no number becomes a large one: it is the bytes that are summed.
    let bytes = v.map(|v| _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(v, inverse))));
    // SAFETY: there are 32 values.
    unsafe {
        _mm_storeu_si128(q.as_mut_ptr().cast(), bytes[0]);
        _mm_storeu_si128(q.as_mut_ptr().add(16).cast(), bytes[1]);
    }
    bytes.map(|bytes| sum(bytes))
}

/// The sum of 16 signed bytes: that of as many unsigned ones, each 128 larger.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn sum(bytes: __m128i) -> i32 {
    let sums = _mm_sad_epu8(_mm_xor_si128(bytes, _mm_set1_epi8(-128)), _mm_setzero_si128());
    _mm_cvtsi128_si32(sums) + _mm_extract_epi32::<2>(sums) - 16 * 128
}

/// `x` rounded to binary16 and back.
#[inline]
#[target_feature(enable = "avx512f,f16c")]
fn half(x: f32) -> f32 {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT;
    _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtps_ph::<NEAREST>(_mm_set_ss(x))))
}
