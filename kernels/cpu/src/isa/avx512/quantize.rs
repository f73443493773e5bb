//! Quantising activations.
#![expect(unsafe_code, reason = "intrinsics")]

use crate::isa::quantize_x86::{self, QuantizeOps};
use crate::loops::quantize::{Q8Block, QuantScheme};
use std::arch::x86_64::*;

pub(super) fn quantize(x: &[f32], scheme: QuantScheme, out: &mut [Q8Block]) {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
    fn body(x: &[f32], scheme: QuantScheme, out: &mut [Q8Block]) {
        // SAFETY: this function is compiled for the features of the vectors.
        unsafe { quantize_x86::row::<Avx512>(x, scheme, out) }
    }
    // SAFETY: reached only through the AVX-512 table, which `Isa` hands out only when the
    // machine has the features.
    unsafe { body(x, scheme, out) }
}

/// Registers of 16 values.
struct Avx512;

impl QuantizeOps for Avx512 {
    #[inline(always)]
    unsafe fn magnitudes(x: &[f32; 32]) -> __m256 {
        // SAFETY: by the caller.
        unsafe {
            let [low, high] = load(x);
            let all = _mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high));
            _mm256_max_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps::<1>(all))
        }
    }
    #[inline(always)]
    unsafe fn bytes(x: &[f32; 32], inverse: f32) -> __m256i {
        // SAFETY: by the caller.
        unsafe {
            let ([low, high], inverse) = (load(x), _mm512_set1_ps(inverse));
            let low = _mm512_cvtps_epi32(_mm512_mul_ps(low, inverse));
            let high = _mm512_cvtps_epi32(_mm512_mul_ps(high, inverse));
            let low = _mm256_castsi128_si256(_mm512_cvtepi32_epi8(low));
            _mm256_inserti128_si256::<1>(low, _mm512_cvtepi32_epi8(high))
        }
    }
    #[inline(always)]
    unsafe fn fours(bytes: __m256i) -> __m256i {
        // SAFETY: by the caller.
        unsafe { _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), bytes) }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(x: &[f32; 32]) -> [__m512; 2] {
    // SAFETY: there are 32 values.
    unsafe { [_mm512_loadu_ps(x.as_ptr()), _mm512_loadu_ps(x.as_ptr().add(16))] }
}
