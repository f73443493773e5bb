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

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,f16c")]
fn blocks<const ROUNDED_SUM: bool>(x: &[f32], offset: i32, out: &mut [ActBlock]) {
    let (x, x_rest) = x.as_chunks::<32>().0.as_chunks::<BESIDE>();
    let (out, rest) = out.as_chunks_mut::<BESIDE>();
    for (x, out) in x.iter().zip(out) {
        beside::<ROUNDED_SUM>(x, offset, out);
    }
    for (x, out) in x_rest.iter().zip(rest) {
        let amax = _mm512_reduce_max_ps(magnitudes(load(x)));
        let sums = round(load(x), inverse_of(amax), &mut out.q);
        let (d, sum) = (amax / 127.0, sums[0] + sums[1]);
        out.d = half(d);
        out.s = if ROUNDED_SUM { half(d * sum as f32) } else { 0.0 };
        out.start = [-offset * sum, 0];
    }
}

/// Blocks whose maxima and sums are found side by side: lanes of one register are added up in more steps
/// than all others of a block take.
const BESIDE: usize = 4;

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,f16c")]
fn beside<const ROUNDED_SUM: bool>(
    x: &[[f32; 32]; BESIDE],
    offset: i32,
    out: &mut [ActBlock; BESIDE],
) {
    let mut largest = [_mm256_setzero_ps(); BESIDE];
    for (largest, x) in largest.iter_mut().zip(x) {
        let all = magnitudes(load(x));
        *largest = _mm256_max_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps::<1>(all));
    }
    let amax = lanes_of_four(largest);
    let some = _mm_cmp_ps_mask::<_CMP_NEQ_UQ>(amax, _mm_setzero_ps());
    let inverse = array(_mm_maskz_div_ps(some, _mm_set1_ps(127.0), amax));
    let mut sums = [_mm256_setzero_si256(); BESIDE];
    for (b, x) in x.iter().enumerate() {
        let [low, high] = bytes(load(x), inverse[b]);
        let q = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
        // SAFETY: there are 32 values.
        unsafe { _mm256_storeu_si256(out[b].q.as_mut_ptr().cast(), q) };
        sums[b] = _mm256_dpbusd_epi32(sums[b], _mm256_set1_epi8(1), q);
    }
    let low = _mm256_hadd_epi32(sums[0], sums[1]);
    let high = _mm256_hadd_epi32(sums[2], sums[3]);
    let sums = _mm256_hadd_epi32(low, high);
    let sums = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
    let d = _mm_div_ps(amax, _mm_set1_ps(127.0));
    let s = match ROUNDED_SUM {
        true => halves(_mm_mul_ps(d, _mm_cvtepi32_ps(sums))),
        false => _mm_setzero_ps(),
    };
    let (d, s, mut sum) = (array(halves(d)), array(s), [0; BESIDE]);
    // SAFETY: there are 4 values.
    unsafe { _mm_storeu_si128(sum.as_mut_ptr().cast(), sums) };
    for (b, out) in out.iter_mut().enumerate() {
        (out.d, out.s, out.start) = (d[b], s[b], [-offset * sum[b], 0]);
    }
}

/// The largest lane of each of four, in order.
#[inline]
#[target_feature(enable = "avx512f")]
fn lanes_of_four(x: [__m256; 4]) -> __m128 {
    let a = _mm256_max_ps(_mm256_unpacklo_ps(x[0], x[1]), _mm256_unpackhi_ps(x[0], x[1]));
    let b = _mm256_max_ps(_mm256_unpacklo_ps(x[2], x[3]), _mm256_unpackhi_ps(x[2], x[3]));
    let (a, b) = (_mm256_castps_pd(a), _mm256_castps_pd(b));
    let (low, high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
    let all = _mm256_max_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high));
    _mm_max_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps::<1>(all))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn array(x: __m128) -> [f32; 4] {
    let mut to = [0.0; 4];
    // SAFETY: there are 4 values.
    unsafe { _mm_storeu_ps(to.as_mut_ptr(), x) };
    to
}

/// The larger magnitude of each lane.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn magnitudes(v: [__m512; 2]) -> __m512 {
    _mm512_max_ps(_mm512_abs_ps(v[0]), _mm512_abs_ps(v[1]))
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

/// The nearest integers, ties to even, of `v · inverse`, cut to 8 bits. What is no number becomes a large
/// one: it is the bytes that are summed.
#[inline]
#[target_feature(enable = "avx512f")]
fn bytes(v: [__m512; 2], inverse: f32) -> [__m128i; 2] {
    let inverse = _mm512_set1_ps(inverse);
    let low = _mm512_cvtps_epi32(_mm512_mul_ps(v[0], inverse));
    let high = _mm512_cvtps_epi32(_mm512_mul_ps(v[1], inverse));
    [_mm512_cvtepi32_epi8(low), _mm512_cvtepi32_epi8(high)]
}

/// Leaves these bytes in `q`, and the sum of each half.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn round(v: [__m512; 2], inverse: f32, q: &mut [i8; 32]) -> [i32; 2] {
    let bytes = bytes(v, inverse);
    // SAFETY: there are 32 values.
    unsafe {
        _mm_storeu_si128(q.as_mut_ptr().cast(), bytes[0]);
        _mm_storeu_si128(q.as_mut_ptr().add(16).cast(), bytes[1]);
    }
    [sum(bytes[0]), sum(bytes[1])]
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
    _mm_cvtss_f32(halves(_mm_set_ss(x)))
}

/// As [`half`], of four.
#[inline]
#[target_feature(enable = "avx512f,f16c")]
fn halves(x: __m128) -> __m128 {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT;
    _mm_cvtph_ps(_mm_cvtps_ph::<NEAREST>(x))
}
