//! Scalar arithmetic, and vectors of 16 `f32` in plain Rust.
#![expect(unsafe_code, reason = "loads and stores through pointers, as the intrinsics have it")]

use crate::simd::f32x16::{EXP2, EXP2_RANGE, F32x16, LANES};
use crate::simd::outline::outline;
use lapwing_model::binary16;

/// `a · b + c`, fused if `FMA`.
#[inline(always)]
pub(crate) fn mul_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// `2^x`, within 1 ULP; zero far below, infinite far above, NaN for NaN.
#[inline(always)]
pub(crate) fn exp2<const FMA: bool>(x: f32) -> f32 {
    const MAGIC: f32 = 12_582_912.0;
    let x = if x < EXP2_RANGE[0] { EXP2_RANGE[0] } else { x };
    let x = if x > EXP2_RANGE[1] { EXP2_RANGE[1] } else { x };
    let shifted = x + MAGIC;
    let exponent = shifted.to_bits().wrapping_sub(MAGIC.to_bits()).cast_signed();
    let r = x - (shifted - MAGIC);
    let mut p = EXP2[5];
    for c in EXP2[..5].iter().rev() {
        p = mul_add::<FMA>(p, r, *c);
    }
    p = mul_add::<FMA>(p, r, 1.0);
    // Two factors, since 2^exponent itself may be out of range.
    let half = exponent >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) << 23).cast_unsigned());
    p * power(half) * power(exponent - half)
}

/// 16 `f32` in plain Rust.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScalarF32x16<const FMA: bool>([f32; LANES]);

impl<const FMA: bool> ScalarF32x16<FMA> {
    #[inline(always)]
    fn zip(mut self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        for i in 0..LANES {
            self.0[i] = f(self.0[i], other.0[i]);
        }
        self
    }

    #[inline(always)]
    fn halves(mut self, f: impl Fn(f32, f32) -> f32) -> f32 {
        let mut half = LANES / 2;
        while half > 0 {
            for i in 0..half {
                self.0[i] = f(self.0[i], self.0[i + half]);
            }
            half /= 2;
        }
        self.0[0]
    }
}

impl<const FMA: bool> F32x16 for ScalarF32x16<FMA> {
    const ROWS: usize = 6;
    const COLUMNS: usize = 1;

    outline!(());
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        ScalarF32x16([x; LANES])
    }
    #[inline(always)]
    unsafe fn load(at: *const f32) -> Self {
        // SAFETY: valid for 16 values, by the caller.
        ScalarF32x16(unsafe { at.cast::<[f32; LANES]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn load_f16(at: *const u16) -> Self {
        // SAFETY: valid for 16 values, by the caller.
        ScalarF32x16(unsafe { at.cast::<[u16; LANES]>().read_unaligned() }.map(binary16::to_f32))
    }
    #[inline(always)]
    unsafe fn load_bf16(at: *const u16) -> Self {
        // SAFETY: valid for 16 values, by the caller.
        let x = unsafe { at.cast::<[u16; LANES]>().read_unaligned() };
        ScalarF32x16(x.map(|x| f32::from_bits(u32::from(x) << 16)))
    }
    #[inline(always)]
    unsafe fn load_i8(at: *const i8) -> Self {
        // SAFETY: valid for 16 values, by the caller.
        ScalarF32x16(unsafe { at.cast::<[i8; LANES]>().read_unaligned() }.map(f32::from))
    }
    #[inline(always)]
    unsafe fn load_nibbles(at: *const u8) -> [Self; 2] {
        // SAFETY: valid for 16 values, by the caller.
        let bytes = unsafe { at.cast::<[u8; LANES]>().read_unaligned() };
        [
            ScalarF32x16(bytes.map(|byte| f32::from(byte & 15))),
            ScalarF32x16(bytes.map(|byte| f32::from(byte >> 4))),
        ]
    }
    #[inline(always)]
    unsafe fn load_u8_of_4(at: *const [u8; 4], byte: usize) -> Self {
        // SAFETY: valid for 16 groups, by the caller.
        let groups = unsafe { at.cast::<[[u8; 4]; LANES]>().read_unaligned() };
        ScalarF32x16(groups.map(|group| f32::from(group[byte])))
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut f32) {
        // SAFETY: valid for 16 values, by the caller.
        unsafe { at.cast::<[f32; LANES]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn store_f16(self, at: *mut u16) {
        // SAFETY: valid for 16 values, by the caller.
        unsafe { at.cast::<[u16; LANES]>().write_unaligned(self.0.map(binary16::from_f32)) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, mut c: Self) -> Self {
        for i in 0..LANES {
            c.0[i] = mul_add::<FMA>(self.0[i], b.0[i], c.0[i]);
        }
        c
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn keep(mut self, bits: u16, other: Self) -> Self {
        for i in 0..LANES {
            self.0[i] = if bits >> i & 1 == 1 { self.0[i] } else { other.0[i] };
        }
        self
    }
    #[inline(always)]
    unsafe fn exp2(mut self) -> Self {
        for x in &mut self.0 {
            *x = exp2::<FMA>(*x);
        }
        self
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        self.halves(|a, b| a + b)
    }
    #[inline(always)]
    unsafe fn highest(self) -> f32 {
        self.halves(|a, b| if a > b { a } else { b })
    }
}
