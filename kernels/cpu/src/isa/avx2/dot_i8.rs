//! Dot products of bytes in 256-bit registers.
#![expect(unsafe_code, reason = "intrinsics")]

mod quads;

use crate::loops::formats::Format;
use crate::loops::gemm_q8::dot::{ActRows, Int8Dot};
use crate::packed::group::Group;
use crate::packed::tile::TileBytes;
use crate::simd::avx2::Avx2F32x16;
use crate::simd::outline::outline;
use quads::{InTile, Kept, Quads};
use std::arch::asm;
use std::arch::x86_64::*;

/// With `vpmaddubsw`: products of unsigned and signed bytes, added in pairs to 16 bits. For weights
/// of few bits, several pairs are added in 16 bits before they are widened.
#[derive(Debug)]
pub(super) struct Maddubs;

/// With `vpdpbusd` of AVX-VNNI: four products are added to 32 bits at once.
#[derive(Debug)]
pub(crate) struct Vnni;

/// Eight 32-bit sums per register.
pub(super) type Sums = [__m256i; 2];

/// Expands code for each quad of a group or of half a group, with the quad's number as a constant.
/// A loop that the compiler does not unroll would test the number at run time.
macro_rules! each_quad {
    ($from:expr, $to:expr, $j:ident => $what:expr) => {
        each_quad!($from, $to, $j => $what; 0 1 2 3 4 5 6 7)
    };
    ($from:expr, $to:expr, $j:ident => $what:expr; $($number:literal)*) => {
        $(if $from <= $number && $number < $to {
            #[expect(non_upper_case_globals, reason = "it stands where a variable would")]
            const $j: usize = $number;
            $what;
        })*
    };
}

/// The initial sums of row `r`.
///
/// # Safety
/// The machine has AVX2, and there is a row `r`.
#[inline(always)]
unsafe fn start<F: Format, const FROM: usize>(x: ActRows, r: usize) -> __m256i {
    // SAFETY: by the caller.
    unsafe { _mm256_set1_epi32(F::start(x.block(r), FROM)) }
}

/// An optimisation barrier: keeps sums in source order, for which the registers suffice.
#[inline]
#[target_feature(enable = "avx2")]
fn keep(mut x: __m256i) -> __m256i {
    // SAFETY: no instruction.
    unsafe { asm!("/* {0} */", inout(ymm_reg) x, options(nomem, nostack, preserves_flags)) };
    x
}

impl Maddubs {
    /// Quads whose pairs fit in 16 bits together: |x| ≤ 127 and q < 2^bits, so a pair is at most 2
    /// · 127 · (2^bits − 1).
    const fn quads(lines: usize) -> usize {
        match lines {
            2..=4 => 8,
            5 => 4,
            6 => 2,
            _ => 1,
        }
    }

    /// # Safety
    /// As [`Int8Dot::dot`].
    #[inline(always)]
    unsafe fn sums<F: Format, W: Quads, const R: usize, const FROM: usize, const TO: usize>(
        w: W,
        x: ActRows,
    ) -> [Sums; R] {
        // SAFETY: by the caller.
        unsafe {
            let mut sums = [[_mm256_setzero_si256(); 2]; R];
            if const { F::IS_WIDE } {
                each_quad!(FROM, TO, j => signed::<W, R, j>(w, x, &mut sums));
                return sums;
            }
            let ones = _mm256_set1_epi16(1);
            let mut pairs = sums;
            let at_once = Self::quads(F::LINES).min(TO - FROM);
            each_quad!(FROM, TO, j => {
                let w = w.quad(j);
                let is_first = (j - FROM).is_multiple_of(at_once);
                for (r, pairs) in pairs.iter_mut().enumerate() {
                    let x = _mm256_set1_epi32(x.quad(r, j));
                    for (pairs, w) in pairs.iter_mut().zip(w) {
                        let pair = _mm256_maddubs_epi16(w, x);
                        *pairs = keep(if is_first { pair } else { _mm256_add_epi16(*pairs, pair) });
                    }
                }
                if (j + 1 - FROM).is_multiple_of(at_once) {
                    let is_first = j + 1 - FROM == at_once;
                    for (r, (sums, pairs)) in sums.iter_mut().zip(pairs).enumerate() {
                        for (sum, pairs) in sums.iter_mut().zip(pairs) {
                            let before = if is_first { start::<F, FROM>(x, r) } else { *sum };
                            *sum = _mm256_add_epi32(before, _mm256_madd_epi16(pairs, ones));
                        }
                    }
                }
            });
            sums
        }
    }
}

/// Adds quad J of 8-bit weights, whose pairs of unsigned weights would overflow 16 bits: computes
/// `|w| · (x with the sign of w)`, which needs no initial sum. A pair is at most 2 · 128 · 127.
///
/// # Safety
/// As [`Int8Dot::dot`].
#[inline(always)]
unsafe fn signed<W: Quads, const R: usize, const J: usize>(w: W, x: ActRows, sums: &mut [Sums; R]) {
    // SAFETY: by the caller.
    unsafe {
        let ones = _mm256_set1_epi16(1);
        let w = w.signed(J);
        let size = [_mm256_abs_epi8(w[0]), _mm256_abs_epi8(w[1])];
        for (r, sums) in sums.iter_mut().enumerate() {
            let x = _mm256_set1_epi32(x.quad(r, J));
            for h in 0..2 {
                let pairs = _mm256_maddubs_epi16(size[h], _mm256_sign_epi8(x, w[h]));
                sums[h] = keep(_mm256_add_epi32(sums[h], _mm256_madd_epi16(pairs, ones)));
            }
        }
    }
}

/// Implements [`Int8Dot`] for a type whose `sums` takes weights from a panel or a tile, and needs
/// `$features`.
macro_rules! dots {
    ($name:ident, $features:literal $(, $item:item)*) => {
        impl Int8Dot for $name {
            type Floats = Avx2F32x16;
            type Sums = Sums;
            const ROWS: usize = 4;

            outline!($features);

            $(#[inline(always)] $item)*

            #[inline(always)]
            unsafe fn dot<F: Format, const R: usize, const FROM: usize, const TO: usize>(
                group: &Group,
                x: ActRows,
            ) -> [Sums; R] {
                // SAFETY: by the caller.
                unsafe { Self::sums::<F, _, R, FROM, TO>(group, x) }
            }

            // Integers are loaded from the tile to registers.
            #[inline(always)]
            unsafe fn prepare<F: Format>(_: &TileBytes<'_>, _: usize, _: &mut Group) {}

            #[inline(always)]
            unsafe fn dot_stored<F: Format, const R: usize, const FROM: usize, const TO: usize>(
                tile: &TileBytes<'_>,
                g: usize,
                _: &Group,
                x: ActRows,
            ) -> [Sums; R] {
                // SAFETY: by the caller.
                unsafe { Self::sums::<F, _, R, FROM, TO>(InTile::<F>::new(tile, g), x) }
            }

            #[inline(always)]
            unsafe fn prepare_kept<F: Format>(_: &TileBytes<'_>, _: usize, _: &mut Group) {}

            #[inline(always)]
            unsafe fn dot_kept<F: Format, const R: usize, const FROM: usize, const TO: usize>(
                tile: &TileBytes<'_>,
                g: usize,
                to: *mut Group,
                x: ActRows,
            ) -> [Sums; R] {
                // SAFETY: by the caller.
                unsafe { Self::sums::<F, _, R, FROM, TO>(Kept::<F>::new(tile, g, to), x) }
            }

            #[inline(always)]
            unsafe fn floats(sums: Sums) -> Avx2F32x16 {
                // SAFETY: by the caller.
                unsafe { Avx2F32x16(_mm256_cvtepi32_ps(sums[0]), _mm256_cvtepi32_ps(sums[1])) }
            }
        }
    };
}

dots!(
    Maddubs,
    "avx2,fma,f16c",
    unsafe fn arrange<F: Format>(group: &mut Group) {
        if F::IS_WIDE {
            group.q.as_flattened_mut().iter_mut().for_each(|q| *q ^= 128);
        }
    }
);

/// Implements [`Int8Dot`] for a type with one intrinsic that adds four products to 32 bits.
macro_rules! vnni {
    ($name:ident, $features:literal, $dot:path) => {
        impl $name {
            /// # Safety
            /// As [`Int8Dot::dot`].
            #[inline(always)]
            unsafe fn sums<F: Format, W: Quads, const R: usize, const FROM: usize, const TO: usize>(
                w: W,
                x: ActRows,
            ) -> [Sums; R] {
                // SAFETY: by the caller.
                unsafe {
                    let mut sums = [[_mm256_setzero_si256(); 2]; R];
                    for (r, sums) in sums.iter_mut().enumerate() {
                        *sums = [start::<F, FROM>(x, r); 2];
                    }
                    each_quad!(FROM, TO, j => {
                        let w = w.quad(j);
                        for (r, sums) in sums.iter_mut().enumerate() {
                            let x = _mm256_set1_epi32(x.quad(r, j));
                            for h in 0..2 {
                                sums[h] = $dot(sums[h], w[h], x);
                            }
                        }
                    });
                    sums
                }
            }
        }

        dots!($name, $features);
    };
}

vnni!(Vnni, "avxvnni,avx2,fma,f16c", _mm256_dpbusd_avx_epi32);

#[cfg(test)]
mod tests;
