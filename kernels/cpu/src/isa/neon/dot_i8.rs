//! Dot products of bytes in 128-bit registers.
#![expect(unsafe_code, reason = "intrinsics")]

use crate::loops::formats::Format;
use crate::loops::gemm_q8::dot::{ActRows, Int8Dot};
use crate::packed::group::Group;
use crate::simd::neon::NeonF32x16;
use crate::simd::outline::outline;
use std::arch::aarch64::*;
use std::arch::asm;

/// With `smlal` and `sadalp`: products are added in 16 bits as often as they fit, then in pairs to
/// 32 bits.
#[derive(Debug)]
pub(super) struct Smlal;

/// With `sdot`: four products are added to 32 bits at once.
#[derive(Debug)]
pub(super) struct Dotprod;

/// With `smmla`: sums of 8 products for two channels and two rows at once.
#[derive(Debug)]
pub(super) struct I8mm;

/// Four 32-bit sums per register.
pub(super) type Sums = [int32x4_t; 4];

/// Bytes `16 t …` of line `j` as signed weights. Integers of a byte are 128 above their values;
/// flipping the top bit restores them, so their sums start at 0.
///
/// # Safety
/// The machine has NEON, and t is less than 4.
#[inline(always)]
unsafe fn weights<F: Format>(group: &Group, j: usize, t: usize) -> int8x16_t {
    // SAFETY: by the caller; a line has 64 bytes.
    unsafe {
        let w = vld1q_s8(group.q[j].as_ptr().add(16 * t).cast());
        if F::IS_WIDE { veorq_s8(w, vdupq_n_s8(-128)) } else { w }
    }
}

/// The initial sums of row `r`.
///
/// # Safety
/// The machine has NEON, and there is a row `r`.
#[inline(always)]
unsafe fn start<F: Format, const FROM: usize>(x: ActRows, r: usize) -> int32x4_t {
    // SAFETY: by the caller.
    unsafe { vdupq_n_s32(if F::IS_WIDE { 0 } else { F::start(x.block(r), FROM) }) }
}

/// # Safety
/// The machine has NEON.
#[inline(always)]
unsafe fn floats(sums: Sums) -> NeonF32x16 {
    // SAFETY: by the caller.
    NeonF32x16(sums.map(|sums| unsafe { vcvtq_f32_s32(sums) }))
}

impl Smlal {
    /// Quads of which a lane's products fit in 16 bits together: |x| ≤ 127, and |w| < 2^bits or ≤
    /// 128.
    const fn quads<F: Format>() -> usize {
        match F::LINES {
            _ if F::IS_WIDE => 2,
            2..=5 => 8,
            6 => 4,
            _ => 2,
        }
    }
}

impl Int8Dot for Smlal {
    type Floats = NeonF32x16;
    type Sums = Sums;
    const ROWS: usize = 2;

    #[inline(always)]
    unsafe fn dot<F: Format, const R: usize, const FROM: usize, const TO: usize>(
        group: &Group,
        x: ActRows,
    ) -> [Sums; R] {
        // SAFETY: by the caller.
        unsafe {
            let mut wide = [[vdupq_n_s32(0); 8]; R];
            let mut from = FROM;
            while from < TO {
                let mut narrow = [[vdupq_n_s16(0); 8]; R];
                for j in from..from + Self::quads::<F>().min(TO - FROM) {
                    for t in 0..4 {
                        let w = weights::<F>(group, j, t);
                        for (r, narrow) in narrow.iter_mut().enumerate() {
                            let x = vreinterpretq_s8_s32(vdupq_n_s32(x.quad(r, j)));
                            let low = (vget_low_s8(w), vget_low_s8(x));
                            narrow[2 * t] = vmlal_s8(narrow[2 * t], low.0, low.1);
                            narrow[2 * t + 1] = vmlal_high_s8(narrow[2 * t + 1], w, x);
                        }
                    }
                }
                for (wide, narrow) in wide.iter_mut().flatten().zip(narrow.iter().flatten()) {
                    *wide = vpadalq_s16(*wide, *narrow);
                }
                from += Self::quads::<F>().min(TO - FROM);
            }
            std::array::from_fn(|r| {
                let start = start::<F, FROM>(x, r);
                std::array::from_fn(|t| {
                    vaddq_s32(start, vpaddq_s32(wide[r][2 * t], wide[r][2 * t + 1]))
                })
            })
        }
    }

    #[inline(always)]
    unsafe fn floats(sums: Sums) -> NeonF32x16 {
        // SAFETY: by the caller.
        unsafe { floats(sums) }
    }
}

/// Adds to each 32-bit lane the products of its four bytes of `w` with quad `LANE` of `x`.
#[inline]
#[target_feature(enable = "neon,dotprod")]
pub(crate) fn sdot<const LANE: usize>(sum: int32x4_t, w: int8x16_t, x: int8x16_t) -> int32x4_t {
    let mut sum = sum;
    // SAFETY: compiled for the extension; it only reads and writes these registers.
    unsafe {
        asm!("sdot {sum:v}.4s, {w:v}.16b, {x:v}.4b[{lane}]",
            sum = inout(vreg) sum, w = in(vreg) w, x = in(vreg) x, lane = const LANE,
            options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// Adds the products of quad `LANE` of four.
///
/// # Safety
/// The machine has the dot products, and `j` is less than 8.
#[inline(always)]
unsafe fn add_quad<F: Format, const R: usize, const LANE: usize>(
    sums: &mut [Sums; R],
    group: &Group,
    j: usize,
    x: &[int8x16_t; R],
) {
    for t in 0..4 {
        // SAFETY: by the caller.
        unsafe {
            let w = weights::<F>(group, j + LANE, t);
            for (sums, x) in sums.iter_mut().zip(x) {
                sums[t] = sdot::<LANE>(sums[t], w, *x);
            }
        }
    }
}

impl Int8Dot for Dotprod {
    type Floats = NeonF32x16;
    type Sums = Sums;
    const ROWS: usize = 3;

    outline!("neon,dotprod");

    #[inline(always)]
    unsafe fn dot<F: Format, const R: usize, const FROM: usize, const TO: usize>(
        group: &Group,
        x: ActRows,
    ) -> [Sums; R] {
        // SAFETY: by the caller.
        unsafe {
            let mut sums: [Sums; R] = std::array::from_fn(|r| [start::<F, FROM>(x, r); 4]);
            for j in (FROM..TO).step_by(4) {
                let x = std::array::from_fn(|r| vld1q_s8(x.block(r).q.as_ptr().add(4 * j)));
                add_quad::<F, R, 0>(&mut sums, group, j, &x);
                add_quad::<F, R, 1>(&mut sums, group, j, &x);
                add_quad::<F, R, 2>(&mut sums, group, j, &x);
                add_quad::<F, R, 3>(&mut sums, group, j, &x);
            }
            sums
        }
    }

    #[inline(always)]
    unsafe fn floats(sums: Sums) -> NeonF32x16 {
        // SAFETY: by the caller.
        unsafe { floats(sums) }
    }
}

/// `sum += w · xᵀ`; w and x are two rows of 8 bytes each.
#[inline]
#[target_feature(enable = "neon,i8mm")]
pub(crate) fn smmla(sum: int32x4_t, w: int8x16_t, x: int8x16_t) -> int32x4_t {
    let mut sum = sum;
    // SAFETY: compiled for the extension; it only reads and writes these registers.
    unsafe {
        asm!("smmla {sum:v}.4s, {w:v}.16b, {x:v}.16b",
            sum = inout(vreg) sum, w = in(vreg) w, x = in(vreg) x,
            options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

impl Int8Dot for I8mm {
    type Floats = NeonF32x16;
    type Sums = Sums;
    const ROWS: usize = 4;

    outline!("neon,i8mm");

    /// Turns two lines of quads into two lines of 8 columns per channel: each 16 bytes of the first
    /// hold two channels, those of the second the next two.
    #[inline(always)]
    unsafe fn arrange<F: Format>(group: &mut Group) {
        for j in (0..8).step_by(2) {
            for t in 0..4 {
                // SAFETY: by the caller; lines have 64 bytes.
                unsafe {
                    let a = vreinterpretq_s32_s8(weights::<F>(group, j, t));
                    let b = vreinterpretq_s32_s8(weights::<F>(group, j + 1, t));
                    let first = group.q[j].as_mut_ptr().add(16 * t).cast();
                    vst1q_s8(first, vreinterpretq_s8_s32(vzip1q_s32(a, b)));
                    let second = group.q[j + 1].as_mut_ptr().add(16 * t).cast();
                    vst1q_s8(second, vreinterpretq_s8_s32(vzip2q_s32(a, b)));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn dot<F: Format, const R: usize, const FROM: usize, const TO: usize>(
        group: &Group,
        x: ActRows,
    ) -> [Sums; R] {
        // SAFETY: by the caller; with an odd number of rows, the last is paired with itself.
        unsafe {
            let pairs = R.div_ceil(2);
            // The first `pairs` hold channels 2i and 2i + 1, each times both rows.
            let mut sums = [[vdupq_n_s32(0); 8]; R];
            for j in (FROM..TO).step_by(2) {
                let mut two = [vdupq_n_s8(0); R];
                for (p, two) in two.iter_mut().take(pairs).enumerate() {
                    let row = |r: usize| vld1_s8(x.block(r).q.as_ptr().add(4 * j));
                    *two = vcombine_s8(row(2 * p), row((2 * p + 1).min(R - 1)));
                }
                for t in 0..4 {
                    let line = |j: usize| vld1q_s8(group.q[j].as_ptr().add(16 * t).cast());
                    let (first, second) = (line(j), line(j + 1));
                    for (sums, two) in sums.iter_mut().zip(&two).take(pairs) {
                        sums[2 * t] = smmla(sums[2 * t], first, *two);
                        sums[2 * t + 1] = smmla(sums[2 * t + 1], second, *two);
                    }
                }
            }
            std::array::from_fn(|r| {
                let start = start::<F, FROM>(x, r);
                let sums = &sums[r / 2];
                std::array::from_fn(|t| {
                    let (a, b) = (sums[2 * t], sums[2 * t + 1]);
                    let row = if r % 2 == 0 { vuzp1q_s32(a, b) } else { vuzp2q_s32(a, b) };
                    vaddq_s32(start, row)
                })
            })
        }
    }

    #[inline(always)]
    unsafe fn floats(sums: Sums) -> NeonF32x16 {
        // SAFETY: by the caller.
        unsafe { floats(sums) }
    }
}
