//! 16 `f32` in one 512-bit register.
#![expect(unsafe_code, reason = "intrinsics")]

use crate::simd::f32x16::{EXP2, EXP2_RANGE, F32x16};
use crate::simd::outline::outline;
use std::arch::x86_64::*;

/// A 512-bit register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512F32x16(pub(crate) __m512);

/// Wraps an intrinsic inside a method of [`F32x16`].
macro_rules! cpu {
    ($e:expr) => {
        // SAFETY: the machine has AVX-512 and pointers are valid, as `F32x16` demands.
        unsafe { $e }
    };
}

impl F32x16 for Avx512F32x16 {
    // The compiler loads all broadcast factors of a step before it multiplies. With 6 rows, the
    // sums, the vectors of `b` and the factors do not fit in 32 registers.
    const ROWS: usize = 5;
    const COLUMNS: usize = 4;

    outline!("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c");
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Avx512F32x16(cpu!(_mm512_set1_ps(x)))
    }
    #[inline(always)]
    unsafe fn load(at: *const f32) -> Self {
        Avx512F32x16(cpu!(_mm512_loadu_ps(at)))
    }
    #[inline(always)]
    unsafe fn load_f16(at: *const u16) -> Self {
        Avx512F32x16(cpu!(_mm512_cvtph_ps(_mm256_loadu_si256(at.cast()))))
    }
    #[inline(always)]
    unsafe fn load_bf16(at: *const u16) -> Self {
        let wide = cpu!(_mm512_cvtepu16_epi32(_mm256_loadu_si256(at.cast())));
        Avx512F32x16(cpu!(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))))
    }
    #[inline(always)]
    unsafe fn load_i8(at: *const i8) -> Self {
        Avx512F32x16(cpu!(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(at.cast())))))
    }
    #[inline(always)]
    unsafe fn load_nibbles(at: *const u8) -> [Self; 2] {
        cpu!({
            let bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(at.cast()));
            let low = _mm512_and_si512(bytes, _mm512_set1_epi32(15));
            let high = _mm512_srli_epi32::<4>(bytes);
            [Avx512F32x16(_mm512_cvtepi32_ps(low)), Avx512F32x16(_mm512_cvtepi32_ps(high))]
        })
    }
    #[inline(always)]
    unsafe fn load_u8_of_4(at: *const [u8; 4], byte: usize) -> Self {
        let shift = cpu!(_mm_cvtsi32_si128(8 * byte as i32));
        let shifted = cpu!(_mm512_srl_epi32(_mm512_loadu_si512(at.cast()), shift));
        let bytes = cpu!(_mm512_and_si512(shifted, _mm512_set1_epi32(255)));
        Avx512F32x16(cpu!(_mm512_cvtepi32_ps(bytes)))
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut f32) {
        cpu!(_mm512_storeu_ps(at, self.0));
    }
    #[inline(always)]
    unsafe fn store_f16(self, at: *mut u16) {
        cpu!(_mm256_storeu_si256(
            at.cast(),
            _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0)
        ));
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Avx512F32x16(cpu!(_mm512_add_ps(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        Avx512F32x16(cpu!(_mm512_sub_ps(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        Avx512F32x16(cpu!(_mm512_mul_ps(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        Avx512F32x16(cpu!(_mm512_div_ps(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        Avx512F32x16(cpu!(_mm512_fmadd_ps(self.0, b.0, c.0)))
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        Avx512F32x16(cpu!(_mm512_max_ps(self.0, other.0)))
    }
    #[inline(always)]
    unsafe fn keep(self, bits: u16, other: Self) -> Self {
        Avx512F32x16(cpu!(_mm512_mask_blend_ps(bits, other.0, self.0)))
    }
    #[inline(always)]
    unsafe fn exp2(self) -> Self {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        cpu!({
            let x = _mm512_max_ps(_mm512_set1_ps(EXP2_RANGE[0]), self.0);
            let x = _mm512_min_ps(_mm512_set1_ps(EXP2_RANGE[1]), x);
            let n = _mm512_roundscale_ps::<NEAREST>(x);
            let r = _mm512_sub_ps(x, n);
            let mut p = _mm512_set1_ps(EXP2[5]);
            for c in EXP2[..5].iter().rev() {
                p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(*c));
            }
            p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0));
            Avx512F32x16(_mm512_scalef_ps(p, n))
        })
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        cpu!({
            let high = _mm512_extractf32x8_ps::<1>(self.0);
            let x = _mm256_add_ps(_mm512_castps512_ps256(self.0), high);
            let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)))
        })
    }
    #[inline(always)]
    unsafe fn highest(self) -> f32 {
        cpu!({
            let high = _mm512_extractf32x8_ps::<1>(self.0);
            let x = _mm256_max_ps(_mm512_castps512_ps256(self.0), high);
            let x = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let x = _mm_max_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)))
        })
    }
}
