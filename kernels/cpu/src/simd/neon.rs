//! 16 `f32` in four 128-bit registers.
#![expect(unsafe_code, reason = "intrinsics")]

use crate::simd::f32x16::{EXP2, EXP2_RANGE, F32x16};
use crate::simd::outline::outline;
use std::arch::aarch64::*;
use std::arch::asm;

/// Four 128-bit registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeonF32x16(pub(crate) [float32x4_t; 4]);

/// Wraps intrinsics inside a method of [`F32x16`].
macro_rules! cpu {
    ($e:expr) => {
        // SAFETY: the machine has NEON, and pointers are valid, as `F32x16` demands.
        unsafe { $e }
    };
}

impl NeonF32x16 {
    /// # Safety
    /// The machine has NEON.
    #[inline(always)]
    unsafe fn zip(
        self,
        other: Self,
        f: unsafe fn(float32x4_t, float32x4_t) -> float32x4_t,
    ) -> Self {
        NeonF32x16(std::array::from_fn(|i| cpu!(f(self.0[i], other.0[i]))))
    }
}

/// Four binary16 to f32.
#[inline]
#[target_feature(enable = "neon")]
fn widen(x: uint16x4_t) -> float32x4_t {
    let wide;
    // SAFETY: every AArch64 has the instruction; it only reads and writes these registers.
    unsafe {
        asm!("fcvtl {wide:v}.4s, {x:v}.4h", wide = lateout(vreg) wide, x = in(vreg) x,
            options(pure, nomem, nostack));
    }
    wide
}

/// Four f32 to the nearest binary16, ties to even.
#[inline]
#[target_feature(enable = "neon")]
fn narrow(x: float32x4_t) -> uint16x4_t {
    let narrow;
    // SAFETY: as above.
    unsafe {
        asm!("fcvtn {narrow:v}.4h, {x:v}.4s", narrow = lateout(vreg) narrow, x = in(vreg) x,
            options(pure, nomem, nostack));
    }
    narrow
}

/// The larger; `b` where either is NaN.
#[inline]
#[target_feature(enable = "neon")]
fn larger(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    vbslq_f32(vcgtq_f32(a, b), a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn exp2(x: float32x4_t) -> float32x4_t {
    let x = vmaxq_f32(x, vdupq_n_f32(EXP2_RANGE[0]));
    let x = vminq_f32(x, vdupq_n_f32(EXP2_RANGE[1]));
    let n = vrndnq_f32(x);
    let r = vsubq_f32(x, n);
    let mut p = vdupq_n_f32(EXP2[5]);
    for c in EXP2[..5].iter().rev() {
        p = vfmaq_f32(vdupq_n_f32(*c), p, r);
    }
    p = vfmaq_f32(vdupq_n_f32(1.0), p, r);
    // Two factors, since 2^n itself may be out of range.
    let n = vcvtnq_s32_f32(n);
    let half = vshrq_n_s32::<1>(n);
    let bias = vdupq_n_s32(127);
    let low = vshlq_n_s32::<23>(vaddq_s32(half, bias));
    let rest = vshlq_n_s32::<23>(vaddq_s32(vsubq_s32(n, half), bias));
    vmulq_f32(vmulq_f32(p, vreinterpretq_f32_s32(low)), vreinterpretq_f32_s32(rest))
}

/// Lanes of `x` whose bit is set, of `other` where it is clear.
#[inline]
#[target_feature(enable = "neon")]
fn blend(bits: u16, x: float32x4_t, other: float32x4_t) -> float32x4_t {
    const LANES: [u32; 4] = [1, 2, 4, 8];
    // SAFETY: four values.
    let lanes = unsafe { vld1q_u32(LANES.as_ptr()) };
    vbslq_f32(vtstq_u32(vdupq_n_u32(u32::from(bits)), lanes), x, other)
}

/// The values of 16 bytes.
///
/// # Safety
/// The machine has NEON.
#[inline(always)]
unsafe fn floats(bytes: int8x16_t) -> [float32x4_t; 4] {
    cpu!({
        let (low, high) = (vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes));
        [
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
            vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
            vcvtq_f32_s32(vmovl_s16(vget_high_s16(high))),
        ]
    })
}

impl F32x16 for NeonF32x16 {
    const ROWS: usize = 6;
    const COLUMNS: usize = 1;

    outline!("neon");
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        NeonF32x16([cpu!(vdupq_n_f32(x)); 4])
    }
    #[inline(always)]
    unsafe fn load(at: *const f32) -> Self {
        NeonF32x16(std::array::from_fn(|i| cpu!(vld1q_f32(at.add(4 * i)))))
    }
    #[inline(always)]
    unsafe fn load_f16(at: *const u16) -> Self {
        NeonF32x16(std::array::from_fn(|i| cpu!(widen(vld1_u16(at.add(4 * i))))))
    }
    #[inline(always)]
    unsafe fn load_bf16(at: *const u16) -> Self {
        NeonF32x16(std::array::from_fn(|i| {
            cpu!(vreinterpretq_f32_u32(vshll_n_u16::<16>(vld1_u16(at.add(4 * i)))))
        }))
    }
    #[inline(always)]
    unsafe fn load_nibbles(at: *const u8) -> [Self; 2] {
        cpu!({
            let bytes = vld1q_u8(at);
            let low = vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(15)));
            let high = vreinterpretq_s8_u8(vshrq_n_u8::<4>(bytes));
            [NeonF32x16(floats(low)), NeonF32x16(floats(high))]
        })
    }
    #[inline(always)]
    unsafe fn load_i8(at: *const i8) -> Self {
        NeonF32x16(cpu!(floats(vld1q_s8(at))))
    }
    #[inline(always)]
    unsafe fn load_u8_of_4(at: *const [u8; 4], byte: usize) -> Self {
        NeonF32x16(std::array::from_fn(|i| {
            cpu!({
                let groups = vld1q_u32(at.add(4 * i).cast());
                let shifted = vshlq_u32(groups, vdupq_n_s32(-8 * byte as i32));
                vcvtq_f32_u32(vandq_u32(shifted, vdupq_n_u32(255)))
            })
        }))
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut f32) {
        for (i, x) in self.0.into_iter().enumerate() {
            cpu!(vst1q_f32(at.add(4 * i), x));
        }
    }
    #[inline(always)]
    unsafe fn store_f16(self, at: *mut u16) {
        for (i, x) in self.0.into_iter().enumerate() {
            cpu!(vst1_u16(at.add(4 * i), narrow(x)));
        }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        cpu!(self.zip(other, vaddq_f32))
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        cpu!(self.zip(other, vsubq_f32))
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        cpu!(self.zip(other, vmulq_f32))
    }
    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        cpu!(self.zip(other, vdivq_f32))
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        NeonF32x16(std::array::from_fn(|i| cpu!(vfmaq_f32(c.0[i], self.0[i], b.0[i]))))
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        cpu!(self.zip(other, larger))
    }
    #[inline(always)]
    unsafe fn keep(self, bits: u16, other: Self) -> Self {
        NeonF32x16(std::array::from_fn(|i| cpu!(blend(bits >> (4 * i), self.0[i], other.0[i]))))
    }
    #[inline(always)]
    unsafe fn exp2(self) -> Self {
        NeonF32x16(self.0.map(|x| cpu!(exp2(x))))
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        cpu!({
            let (a, b) = (vaddq_f32(self.0[0], self.0[2]), vaddq_f32(self.0[1], self.0[3]));
            let x = vaddq_f32(a, b);
            let x = vadd_f32(vget_low_f32(x), vget_high_f32(x));
            vget_lane_f32::<0>(x) + vget_lane_f32::<1>(x)
        })
    }
    #[inline(always)]
    unsafe fn highest(self) -> f32 {
        cpu!({
            let (a, b) = (larger(self.0[0], self.0[2]), larger(self.0[1], self.0[3]));
            vmaxvq_f32(larger(a, b))
        })
    }
}
