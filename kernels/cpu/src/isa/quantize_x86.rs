//! Quantises activations with x86 vectors; the results equal those of
//! [`quantize::row`](crate::loops::quantize::row).
#![expect(unsafe_code, reason = "intrinsics")]

use crate::loops::quantize::{Q8Block, QuantScheme, inverse_of, super_scale};
use std::arch::x86_64::*;

/// The operations on 32 values that differ between instruction sets.
///
/// # Safety
/// Every method: the machine has AVX2, F16C and the instructions of the implementing type.
pub(super) trait QuantizeOps {
    /// The largest magnitude of four values, in each lane.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn magnitudes(x: &[f32; 32]) -> __m256;

    /// The nearest integers, ties to even, of `x · inverse`, truncated to 8 bits. NaN becomes an
    /// arbitrary integer; sums are of the truncated bytes.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn bytes(x: &[f32; 32], inverse: f32) -> __m256i;

    /// Sums of four consecutive bytes, in order.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn fours(bytes: __m256i) -> __m256i;
}

/// Quantises a row.
///
/// # Safety
/// As [`QuantizeOps`] says.
#[inline(always)]
pub(super) unsafe fn row<V: QuantizeOps>(x: &[f32], scheme: QuantScheme, out: &mut [Q8Block]) {
    // SAFETY: by the caller.
    unsafe {
        match scheme {
            QuantScheme::Q8_0(offset) => blocks::<V, false, false>(x, offset, out),
            QuantScheme::Q8_0Halves(offset) => blocks::<V, false, true>(x, offset, out),
            QuantScheme::Q8_1 => blocks::<V, true, false>(x, 0, out),
            QuantScheme::Q8K(offset) => super_blocks::<V>(x, offset, out),
        }
    }
}

/// Blocks whose maxima and sums are reduced together: the horizontal reduction of one register
/// takes more steps than the rest of a block.
const INTERLEAVED: usize = 4;

/// # Safety
/// As [`QuantizeOps`] says.
#[inline(always)]
unsafe fn blocks<V: QuantizeOps, const ROUNDED_SUM: bool, const HALVES: bool>(
    x: &[f32],
    offset: i32,
    out: &mut [Q8Block],
) {
    let (x, x_rest) = x.as_chunks::<32>().0.as_chunks::<INTERLEAVED>();
    let (out, rest) = out.as_chunks_mut::<INTERLEAVED>();
    // SAFETY: by the caller.
    unsafe {
        for (x, out) in x.iter().zip(out) {
            interleaved::<V, ROUNDED_SUM, HALVES>(x, offset, out);
        }
        for (x, out) in x_rest.iter().zip(rest) {
            let amax = _mm_cvtss_f32(largest_of_four([V::magnitudes(x); INTERLEAVED]));
            let q = V::bytes(x, inverse_of(amax));
            store(q, out);
            let Halves(first, second) = sums_of_four([V::fours(q); INTERLEAVED]);
            let sums = [first, second].map(|half| _mm_cvtsi128_si32(half));
            let sum = sums[0] + sums[1];
            let d = amax / 127.0;
            out.d = half(d);
            out.s = if ROUNDED_SUM { half(d * sum as f32) } else { 0.0 };
            out.start = if HALVES { sums.map(|sum| -offset * sum) } else { [-offset * sum, 0] };
        }
    }
}

/// # Safety
/// As [`QuantizeOps`] says.
#[inline(always)]
unsafe fn interleaved<V: QuantizeOps, const ROUNDED_SUM: bool, const HALVES: bool>(
    x: &[[f32; 32]; INTERLEAVED],
    offset: i32,
    out: &mut [Q8Block; INTERLEAVED],
) {
    // SAFETY: by the caller.
    unsafe {
        let mut largest = [_mm256_setzero_ps(); INTERLEAVED];
        for (largest, x) in largest.iter_mut().zip(x) {
            *largest = V::magnitudes(x);
        }
        let amax = largest_of_four(largest);
        let none = _mm_cmpeq_ps(amax, _mm_setzero_ps());
        let inverse = array(_mm_andnot_ps(none, _mm_div_ps(_mm_set1_ps(127.0), amax)));
        let mut sums = [_mm256_setzero_si256(); INTERLEAVED];
        for (b, (x, out)) in x.iter().zip(out.iter_mut()).enumerate() {
            let q = V::bytes(x, inverse[b]);
            store(q, out);
            sums[b] = V::fours(q);
        }
        let Halves(first, second) = sums_of_four(sums);
        let sums = _mm_add_epi32(first, second);
        let d = _mm_div_ps(amax, _mm_set1_ps(127.0));
        let s = match ROUNDED_SUM {
            true => halves(_mm_mul_ps(d, _mm_cvtepi32_ps(sums))),
            false => _mm_setzero_ps(),
        };
        let (d, s) = (array(halves(d)), array(s));
        let [first, second] = if HALVES { [first, second] } else { [sums, _mm_setzero_si128()] };
        let (first, second) = (integers(first), integers(second));
        for (b, out) in out.iter_mut().enumerate() {
            let start = [-offset * first[b], -offset * second[b]];
            (out.d, out.s, out.start) = (d[b], s[b], start);
        }
    }
}

/// # Safety
/// As [`QuantizeOps`] says.
#[inline(always)]
unsafe fn super_blocks<V: QuantizeOps>(x: &[f32], offset: i32, out: &mut [Q8Block]) {
    for (x, out) in x.as_chunks::<256>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        // SAFETY: by the caller; 8 values are loaded of a chunk of as many.
        let (d, inverse) = unsafe {
            let (mut high, mut low) = (_mm256_setzero_ps(), _mm256_setzero_ps());
            for x in x.as_chunks::<8>().0 {
                let x = _mm256_loadu_ps(x.as_ptr());
                // This operand order ignores NaN.
                high = _mm256_max_ps(x, high);
                low = _mm256_min_ps(x, low);
            }
            let low = _mm256_sub_ps(_mm256_setzero_ps(), low);
            let [high, low, ..] = array(largest_of_four([high, low, high, low]));
            super_scale(x, high, -low)
        };
        let blocks = x.as_chunks::<32>().0.as_chunks::<INTERLEAVED>().0;
        for (x, out) in blocks.iter().zip(out.as_chunks_mut::<INTERLEAVED>().0) {
            // SAFETY: by the caller.
            unsafe {
                let mut sums = [_mm256_setzero_si256(); INTERLEAVED];
                for (b, (x, out)) in x.iter().zip(out.iter_mut()).enumerate() {
                    let q = V::bytes(x, inverse);
                    store(q, out);
                    sums[b] = V::fours(q);
                }
                let Halves(first, second) = sums_of_four(sums);
                let (first, second) = (integers(first), integers(second));
                for (b, out) in out.iter_mut().enumerate() {
                    out.d = d;
                    out.s = (first[b] + second[b]) as f32;
                    out.start = [-offset * first[b], -offset * second[b]];
                }
            }
        }
    }
}

/// The largest lane of each of four vectors, in order.
#[inline]
#[target_feature(enable = "avx2")]
fn largest_of_four(x: [__m256; INTERLEAVED]) -> __m128 {
    let a = _mm256_max_ps(_mm256_unpacklo_ps(x[0], x[1]), _mm256_unpackhi_ps(x[0], x[1]));
    let b = _mm256_max_ps(_mm256_unpacklo_ps(x[2], x[3]), _mm256_unpackhi_ps(x[2], x[3]));
    let (a, b) = (_mm256_castps_pd(a), _mm256_castps_pd(b));
    let (low, high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
    let all = _mm256_max_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high));
    _mm_max_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps::<1>(all))
}

/// Sums of the lower four lanes of each of four vectors, and of the upper ones.
struct Halves(__m128i, __m128i);

#[inline]
#[target_feature(enable = "avx2")]
fn sums_of_four(x: [__m256i; INTERLEAVED]) -> Halves {
    let sums = _mm256_hadd_epi32(_mm256_hadd_epi32(x[0], x[1]), _mm256_hadd_epi32(x[2], x[3]));
    Halves(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums))
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(bytes: __m256i, out: &mut Q8Block) {
    // SAFETY: there are 32 values.
    unsafe { _mm256_storeu_si256(out.q.as_mut_ptr().cast(), bytes) };
}

#[inline]
#[target_feature(enable = "avx2")]
fn array(x: __m128) -> [f32; 4] {
    let mut to = [0.0; 4];
    // SAFETY: there are 4 values.
    unsafe { _mm_storeu_ps(to.as_mut_ptr(), x) };
    to
}

#[inline]
#[target_feature(enable = "avx2")]
fn integers(x: __m128i) -> [i32; 4] {
    let mut to = [0; 4];
    // SAFETY: there are 4 values.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), x) };
    to
}

/// `x` rounded to binary16 and back.
#[inline]
#[target_feature(enable = "f16c")]
fn half(x: f32) -> f32 {
    _mm_cvtss_f32(halves(_mm_set_ss(x)))
}

/// Four values rounded to binary16 and back.
#[inline]
#[target_feature(enable = "f16c")]
fn halves(x: __m128) -> __m128 {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT;
    _mm_cvtph_ps(_mm_cvtps_ph::<NEAREST>(x))
}
