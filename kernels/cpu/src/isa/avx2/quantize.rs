//! Quantising activations.
#![expect(unsafe_code, reason = "intrinsics")]

use crate::isa::quantize_x86::{self, QuantizeOps};
use crate::loops::quantize::{Q8Block, QuantScheme};
use std::arch::x86_64::*;

pub(super) fn quantize(x: &[f32], scheme: QuantScheme, out: &mut [Q8Block]) {
    #[target_feature(enable = "avx2,fma,f16c")]
    fn body(x: &[f32], scheme: QuantScheme, out: &mut [Q8Block]) {
        // SAFETY: this function is compiled for the features of the vectors.
        unsafe { quantize_x86::row::<Avx2>(x, scheme, out) }
    }
    // SAFETY: reached only through this module's table, which `Isa` hands out only when the
    // machine has the features.
    unsafe { body(x, scheme, out) }
}

/// Registers of 8 values.
struct Avx2;

impl QuantizeOps for Avx2 {
    #[inline(always)]
    unsafe fn magnitudes(x: &[f32; 32]) -> __m256 {
        // SAFETY: by the caller.
        unsafe {
            let ([a, b, c, d], sign) = (load(x), _mm256_set1_ps(-0.0));
            let (a, b) = (_mm256_andnot_ps(sign, a), _mm256_andnot_ps(sign, b));
            let (c, d) = (_mm256_andnot_ps(sign, c), _mm256_andnot_ps(sign, d));
            _mm256_max_ps(_mm256_max_ps(a, b), _mm256_max_ps(c, d))
        }
    }
    #[inline(always)]
    unsafe fn bytes(x: &[f32; 32], inverse: f32) -> __m256i {
        // SAFETY: by the caller.
        unsafe {
            let ([a, b, c, d], inverse) = (load(x), _mm256_set1_ps(inverse));
            let low = words(a, b, inverse);
            let high = words(c, d, inverse);
            // `vpackus` packs each half of a register separately.
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order)
        }
    }
    #[inline(always)]
    unsafe fn fours(bytes: __m256i) -> __m256i {
        // SAFETY: by the caller.
        unsafe {
            let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
            _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(x: &[f32; 32]) -> [__m256; 4] {
    let at = x.as_ptr();
    // SAFETY: there are 32 values.
    unsafe {
        [
            _mm256_loadu_ps(at),
            _mm256_loadu_ps(at.add(8)),
            _mm256_loadu_ps(at.add(16)),
            _mm256_loadu_ps(at.add(24)),
        ]
    }
}

/// The lowest byte of each rounded value, in 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn words(a: __m256, b: __m256, inverse: __m256) -> __m256i {
    let byte = _mm256_set1_epi32(0xff);
    let a = _mm256_and_si256(_mm256_cvtps_epi32(_mm256_mul_ps(a, inverse)), byte);
    let b = _mm256_and_si256(_mm256_cvtps_epi32(_mm256_mul_ps(b, inverse)), byte);
    _mm256_packus_epi32(a, b)
}
