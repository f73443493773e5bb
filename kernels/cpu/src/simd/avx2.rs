//! 16 `f32` in two 256-bit registers.
#![expect(unsafe_code, reason = "intrinsics")]

use crate::simd::f32x16::{EXP2, EXP2_RANGE, F32x16};
use crate::simd::outline::outline;
use std::arch::x86_64::*;

/// Two 256-bit registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2F32x16(pub(crate) __m256, pub(crate) __m256);

/// Wraps an intrinsic inside a method of [`F32x16`].
macro_rules! cpu {
    ($e:expr) => {
        // SAFETY: the machine has AVX2, FMA and F16C, and pointers are valid, as `F32x16` demands.
        unsafe { $e }
    };
}

/// # Safety
/// The machine has AVX2 and FMA.
#[inline(always)]
unsafe fn exp2(x: __m256) -> __m256 {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    cpu!({
        let x = _mm256_max_ps(_mm256_set1_ps(EXP2_RANGE[0]), x);
        let x = _mm256_min_ps(_mm256_set1_ps(EXP2_RANGE[1]), x);
        let n = _mm256_round_ps::<NEAREST>(x);
        let r = _mm256_sub_ps(x, n);
        let mut p = _mm256_set1_ps(EXP2[5]);
        for c in EXP2[..5].iter().rev() {
            p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(*c));
        }
        p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0));
        // Two factors, since 2^n itself may be out of range.
        let n = _mm256_cvtps_epi32(n);
        let half = _mm256_srai_epi32::<1>(n);
        let bias = _mm256_set1_epi32(127);
        let low = _mm256_slli_epi32::<23>(_mm256_add_epi32(half, bias));
        let rest = _mm256_add_epi32(_mm256_sub_epi32(n, half), bias);
        let high = _mm256_slli_epi32::<23>(rest);
        let p = _mm256_mul_ps(p, _mm256_castsi256_ps(low));
        _mm256_mul_ps(p, _mm256_castsi256_ps(high))
    })
}

/// Lanes of `x` whose bit is set, of `other` where it is clear.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn blend(bits: u16, x: __m256, other: __m256) -> __m256 {
    cpu!({
        let lanes = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        let set = _mm256_and_si256(_mm256_set1_epi32(i32::from(bits)), lanes);
        _mm256_blendv_ps(other, x, _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, lanes)))
    })
}

impl F32x16 for Avx2F32x16 {
    const ROWS: usize = 6;
    const COLUMNS: usize = 1;

    outline!("avx2,fma,f16c");
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        let x = cpu!(_mm256_set1_ps(x));
        Avx2F32x16(x, x)
    }
    #[inline(always)]
    unsafe fn load(at: *const f32) -> Self {
        cpu!(Avx2F32x16(_mm256_loadu_ps(at), _mm256_loadu_ps(at.add(8))))
    }
    #[inline(always)]
    unsafe fn load_f16(at: *const u16) -> Self {
        cpu!({
            let (low, high) = (_mm_loadu_si128(at.cast()), _mm_loadu_si128(at.add(8).cast()));
            Avx2F32x16(_mm256_cvtph_ps(low), _mm256_cvtph_ps(high))
        })
    }
    #[inline(always)]
    unsafe fn load_bf16(at: *const u16) -> Self {
        cpu!({
            let (low, high) = (_mm_loadu_si128(at.cast()), _mm_loadu_si128(at.add(8).cast()));
            let (low, high) = (_mm256_cvtepu16_epi32(low), _mm256_cvtepu16_epi32(high));
            let (low, high) = (_mm256_slli_epi32::<16>(low), _mm256_slli_epi32::<16>(high));
            Avx2F32x16(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high))
        })
    }
    #[inline(always)]
    unsafe fn load_i8(at: *const i8) -> Self {
        cpu!({
            let (low, high) = (_mm_loadl_epi64(at.cast()), _mm_loadl_epi64(at.add(8).cast()));
            let (low, high) = (_mm256_cvtepi8_epi32(low), _mm256_cvtepi8_epi32(high));
            Avx2F32x16(_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high))
        })
    }
    #[inline(always)]
    unsafe fn load_nibbles(at: *const u8) -> [Self; 2] {
        cpu!({
            let (low, high) = (_mm_loadl_epi64(at.cast()), _mm_loadl_epi64(at.add(8).cast()));
            let (low, high) = (_mm256_cvtepu8_epi32(low), _mm256_cvtepu8_epi32(high));
            let mask = _mm256_set1_epi32(15);
            let first = (_mm256_and_si256(low, mask), _mm256_and_si256(high, mask));
            let last = (_mm256_srli_epi32::<4>(low), _mm256_srli_epi32::<4>(high));
            [
                Avx2F32x16(_mm256_cvtepi32_ps(first.0), _mm256_cvtepi32_ps(first.1)),
                Avx2F32x16(_mm256_cvtepi32_ps(last.0), _mm256_cvtepi32_ps(last.1)),
            ]
        })
    }
    #[inline(always)]
    unsafe fn load_u8_of_4(at: *const [u8; 4], byte: usize) -> Self {
        cpu!({
            let (shift, mask) = (_mm_cvtsi32_si128(8 * byte as i32), _mm256_set1_epi32(255));
            let (low, high) = (_mm256_loadu_si256(at.cast()), _mm256_loadu_si256(at.add(8).cast()));
            let (low, high) = (_mm256_srl_epi32(low, shift), _mm256_srl_epi32(high, shift));
            let (low, high) = (_mm256_and_si256(low, mask), _mm256_and_si256(high, mask));
            Avx2F32x16(_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high))
        })
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut f32) {
        cpu!({
            _mm256_storeu_ps(at, self.0);
            _mm256_storeu_ps(at.add(8), self.1);
        });
    }
    #[inline(always)]
    unsafe fn store_f16(self, at: *mut u16) {
        cpu!({
            let (low, high) = (_mm256_cvtps_ph::<0>(self.0), _mm256_cvtps_ph::<0>(self.1));
            _mm_storeu_si128(at.cast(), low);
            _mm_storeu_si128(at.add(8).cast(), high);
        });
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        cpu!(Avx2F32x16(_mm256_add_ps(self.0, other.0), _mm256_add_ps(self.1, other.1)))
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        cpu!(Avx2F32x16(_mm256_sub_ps(self.0, other.0), _mm256_sub_ps(self.1, other.1)))
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        cpu!(Avx2F32x16(_mm256_mul_ps(self.0, other.0), _mm256_mul_ps(self.1, other.1)))
    }
    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        cpu!(Avx2F32x16(_mm256_div_ps(self.0, other.0), _mm256_div_ps(self.1, other.1)))
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        cpu!(Avx2F32x16(_mm256_fmadd_ps(self.0, b.0, c.0), _mm256_fmadd_ps(self.1, b.1, c.1)))
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        cpu!(Avx2F32x16(_mm256_max_ps(self.0, other.0), _mm256_max_ps(self.1, other.1)))
    }
    #[inline(always)]
    unsafe fn keep(self, bits: u16, other: Self) -> Self {
        cpu!(Avx2F32x16(blend(bits, self.0, other.0), blend(bits >> 8, self.1, other.1)))
    }
    #[inline(always)]
    unsafe fn exp2(self) -> Self {
        cpu!(Avx2F32x16(exp2(self.0), exp2(self.1)))
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        cpu!({
            let x = _mm256_add_ps(self.0, self.1);
            let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)))
        })
    }
    #[inline(always)]
    unsafe fn highest(self) -> f32 {
        cpu!({
            let x = _mm256_max_ps(self.0, self.1);
            let x = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let x = _mm_max_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)))
        })
    }
}
