//! Sums of products of bytes in 256-bit registers.
#![expect(unsafe_code, reason = "intrinsics")]

use super::lanes::Ymm;
use crate::cpu::isa::blocks::{Dots, Rows};
use crate::cpu::isa::formats::Format;
use crate::cpu::packed::Group;
use std::arch::asm;
use std::arch::x86_64::*;

/// With `vpmaddubsw`: products of unsigned and signed bytes, added in pairs of 16 bits. Pairs of
/// narrow weights are added in 16 bits too, as often as they fit, before they are widened.
#[derive(Debug)]
pub(super) struct Pairs;

/// With `vpdpbusd` as AVX-VNNI has it: four products are added to 32 bits at once.
#[derive(Debug)]
pub(in crate::cpu::isa) struct Vnni;

/// 8 sums of 32 bits per register.
pub(super) type Sums = [__m256i; 2];

/// Sums that begin with the activations' start, or zero.
///
/// # Safety
/// The machine has AVX2, and there are R rows.
#[inline(always)]
unsafe fn begin<F: Format, const R: usize, const FROM: usize>(x: Rows) -> [Sums; R] {
    // SAFETY: by the caller.
    std::array::from_fn(|r| unsafe {
        let start = if F::OFFSET { x.block(r).start[FROM / 4] } else { 0 };
        [_mm256_set1_epi32(start); 2]
    })
}

/// A line of a group.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn line(group: &Group, j: usize) -> [__m256i; 2] {
    // SAFETY: by the caller; a line has 64 bytes and is aligned to as many.
    [0, 32].map(|at| unsafe { _mm256_load_si256(group.q[j].as_ptr().add(at).cast()) })
}

/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn floats(sums: Sums) -> Ymm {
    // SAFETY: by the caller.
    unsafe { Ymm(_mm256_cvtepi32_ps(sums[0]), _mm256_cvtepi32_ps(sums[1])) }
}

#[inline(always)]
fn prefetch(at: *const u8) {
    // SAFETY: a prefetch reads nothing; every x86-64 has the instruction.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

/// The same value, of which the compiler knows nothing more, and not before those that were kept
/// before it: sums stay in the order in which they are written, for which the registers suffice.
#[inline]
#[target_feature(enable = "avx2")]
fn keep(mut x: __m256i) -> __m256i {
    // SAFETY: no instruction.
    unsafe { asm!("/* {0} */", inout(ymm_reg) x, options(nomem, nostack, preserves_flags)) };
    x
}

impl Pairs {
    /// Quads whose pairs fit in 16 bits together: |x| is at most 127, and q less than
    /// 2^bits, so that a pair is at most 2 · 127 · (2^bits − 1).
    const fn quads(lines: usize) -> usize {
        match lines {
            4 => 8,
            5 => 4,
            6 => 2,
            _ => 1,
        }
    }
}

impl Dots for Pairs {
    type Floats = Ymm;
    type Sums = Sums;
    const ROWS: usize = 3;

    #[inline(always)]
    unsafe fn dots<F: Format, const R: usize, const FROM: usize, const TO: usize>(
        group: &Group,
        x: Rows,
    ) -> [Sums; R] {
        // SAFETY: by the caller.
        unsafe {
            if F::LINES == 8 {
                return signed::<R, FROM, TO>(group, x);
            }
            let ones = _mm256_set1_epi16(1);
            let mut sums = begin::<F, R, FROM>(x);
            let mut from = FROM;
            while from < TO {
                let mut pairs = [[_mm256_setzero_si256(); 2]; R];
                for j in from..from + Self::quads(F::LINES).min(TO - FROM) {
                    let w = line(group, j);
                    for (r, pairs) in pairs.iter_mut().enumerate() {
                        let x = _mm256_set1_epi32(x.quad(r, j));
                        for h in 0..2 {
                            let sum = _mm256_add_epi16(pairs[h], _mm256_maddubs_epi16(w[h], x));
                            pairs[h] = keep(sum);
                        }
                    }
                }
                for (sums, pairs) in sums.iter_mut().zip(pairs) {
                    for h in 0..2 {
                        sums[h] = _mm256_add_epi32(sums[h], _mm256_madd_epi16(pairs[h], ones));
                    }
                }
                from += Self::quads(F::LINES).min(TO - FROM);
            }
            sums
        }
    }

    #[inline(always)]
    unsafe fn floats(sums: Sums) -> Ymm {
        // SAFETY: by the caller.
        unsafe { floats(sums) }
    }

    #[inline(always)]
    fn prefetch(at: *const u8) {
        prefetch(at);
    }
}

/// For weights of 8 bits, whose products do not fit: `|w| · (x with the sign of w)`, w being the
/// stored value, with which the sums need no start. A pair is at most 2 · 128 · 127.
///
/// # Safety
/// As [`Dots::dots`].
#[inline(always)]
unsafe fn signed<const R: usize, const FROM: usize, const TO: usize>(
    group: &Group,
    x: Rows,
) -> [Sums; R] {
    // SAFETY: by the caller.
    unsafe {
        let (ones, offset) = (_mm256_set1_epi16(1), _mm256_set1_epi8(-128));
        let mut sums = [[_mm256_setzero_si256(); 2]; R];
        for j in FROM..TO {
            let w = line(group, j).map(|w| _mm256_xor_si256(w, offset));
            let size = w.map(|w| _mm256_abs_epi8(w));
            for (r, sums) in sums.iter_mut().enumerate() {
                let x = _mm256_set1_epi32(x.quad(r, j));
                for h in 0..2 {
                    let pairs = _mm256_maddubs_epi16(size[h], _mm256_sign_epi8(x, w[h]));
                    sums[h] = keep(_mm256_add_epi32(sums[h], _mm256_madd_epi16(pairs, ones)));
                }
            }
        }
        sums
    }
}

/// [`Dots`] of a type whose four products are added to 32 bits by one intrinsic.
macro_rules! vnni {
    ($name:ident, $dot:path) => {
        impl Dots for $name {
            type Floats = Ymm;
            type Sums = Sums;
            const ROWS: usize = 3;

            #[inline(always)]
            unsafe fn dots<F: Format, const R: usize, const FROM: usize, const TO: usize>(
                group: &Group,
                x: Rows,
            ) -> [Sums; R] {
                // SAFETY: by the caller.
                unsafe {
                    let mut sums = begin::<F, R, FROM>(x);
                    for j in FROM..TO {
                        let w = line(group, j);
                        for (r, sums) in sums.iter_mut().enumerate() {
                            let x = _mm256_set1_epi32(x.quad(r, j));
                            for h in 0..2 {
                                sums[h] = $dot(sums[h], w[h], x);
                            }
                        }
                    }
                    sums
                }
            }

            #[inline(always)]
            unsafe fn floats(sums: Sums) -> Ymm {
                // SAFETY: by the caller.
                unsafe { floats(sums) }
            }

            #[inline(always)]
            fn prefetch(at: *const u8) {
                prefetch(at);
            }
        }
    };
}

vnni!(Vnni, _mm256_dpbusd_avx_epi32);

#[cfg(test)]
mod tests;
