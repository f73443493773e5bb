//! A register block: some rows × a panel of a pair of tiles.

use super::super::ahead::Ahead;
use super::super::load_group::load;
use crate::loops::formats::Format;
use crate::loops::gemm_args::{HalfMinimums, TilePairGroup};
use crate::loops::quantize::Q8Block;
use crate::packed::layout::TILE;
use std::arch::x86_64::*;

/// Adds the products of quads `$from .. $to` of group `$w` to `$dot`, which is all zero, for the
/// activation blocks at `$x`, `$groups` apart. A macro, because the sums must stay in registers.
macro_rules! dot {
    ($dot:ident, $F:ident, ($w:ident, $x:ident, $groups:ident), $from:literal, $to:literal) => {
        if $F::HAS_ZERO_POINT {
            for (r, dot) in $dot.iter_mut().enumerate() {
                *dot = [_mm512_set1_epi32($F::start(&*$x.add(r * $groups), $from)); T];
            }
        }
        for j in $from..$to {
            let mut lines = [_mm512_setzero_si512(); T];
            for t in 0..T {
                lines[t] = _mm512_load_si512($w.q[j][t].as_ptr().cast());
            }
            for (r, dot) in $dot.iter_mut().enumerate() {
                let four = (&raw const (*$x.add(r * $groups)).q).cast::<i32>().add(j);
                let four = _mm512_set1_epi32(*four);
                for t in 0..T {
                    dot[t] = _mm512_dpbusd_epi32(dot[t], lines[t], four);
                }
            }
        }
    };
}

/// `acc += dot · scale`, or with the activation blocks of rows `acc += dot · (scale · d)`.
macro_rules! add_scaled {
    ($acc:ident, $dot:ident, $scale:expr $(, ($x:ident, $groups:ident))?) => {
        for (_r, (acc, dot)) in $acc.iter_mut().zip(&$dot).enumerate() {
            for t in 0..T {
                let scale = load(&$scale[t]);
                $(let scale = _mm512_mul_ps(scale, _mm512_set1_ps((*$x.add(_r * $groups)).d));)?
                acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[t]), scale, acc[t]);
            }
        }
    };
}

/// `acc += min · s`, with what row `$r` multiplies the minimums by.
macro_rules! add_minimums {
    ($acc:ident, $min:expr, |$r:ident| $s:expr) => {
        for ($r, acc) in $acc.iter_mut().enumerate() {
            let s = $s;
            for (acc, min) in acc.iter_mut().zip(&$min) {
                *acc = _mm512_fmadd_ps(load(min), s, *acc);
            }
        }
    };
}

/// What minimums of half a group are multiplied by ([`Factors`](super::super::factors::Factors)).
#[inline]
#[target_feature(enable = "avx512f")]
fn start_of(x: &Q8Block, half: usize) -> __m512 {
    _mm512_cvtepi32_ps(_mm512_set1_epi32(x.start[half]))
}

/// A register block: some rows × a panel of a pair of tiles.
pub(super) struct Block<'a> {
    /// Starts at a group that is a multiple of 8; the length is a multiple of 8 unless these are
    /// the last groups.
    pub(super) pairs: &'a [TilePairGroup],
    /// Minimums of the halves of these groups, in formats that have them.
    pub(super) half_minimums: &'a [HalfMinimums],
    /// Activation blocks of these groups; rows are `groups` apart.
    pub(super) x: &'a [Q8Block],
    pub(super) groups: usize,
    /// Whether the sums start at zero; otherwise they continue those in the output.
    pub(super) is_first: bool,
    pub(super) out: *mut f32,
    pub(super) stride: usize,
    /// What the block prefetches meanwhile.
    pub(super) ahead: Ahead,
}

impl Block<'_> {
    /// # Safety
    /// `x` has min(`rows`, 6) rows, `groups` apart, of as many blocks as there are pairs; `out` has
    /// 16·T values at so many multiples of `stride`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
    pub(super) unsafe fn run<F: Format, const T: usize>(&self, rows: usize) {
        // SAFETY: by the caller.
        unsafe {
            if const { F::GROUPS == 1 } {
                return match rows {
                    1 => self.plain::<F, T, 1>(),
                    2 => self.plain::<F, T, 2>(),
                    3 => self.plain::<F, T, 3>(),
                    4 => self.plain::<F, T, 4>(),
                    5 => self.plain::<F, T, 5>(),
                    _ => self.plain::<F, T, 6>(),
                };
            }
            match rows {
                1 => self.super_blocks::<F, T, 1>(),
                2 => self.super_blocks::<F, T, 2>(),
                3 => self.super_blocks::<F, T, 3>(),
                4 => self.super_blocks::<F, T, 4>(),
                5 => self.super_blocks::<F, T, 5>(),
                _ => self.super_blocks::<F, T, 6>(),
            }
        }
    }

    /// # Safety
    /// As [`Block::run`] for R rows.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
    unsafe fn plain<F: Format, const T: usize, const R: usize>(&self) {
        let groups = self.groups;
        let mut acc = [[_mm512_setzero_ps(); T]; R];
        if !self.is_first {
            for (r, acc) in acc.iter_mut().enumerate() {
                for (t, acc) in acc.iter_mut().enumerate() {
                    // SAFETY: the values are there, by the caller.
                    *acc = unsafe { _mm512_loadu_ps(self.out.add(r * self.stride + t * TILE)) };
                }
            }
        }
        for (g, w) in self.pairs.iter().enumerate() {
            self.ahead.prefetch(g);
            // SAFETY: row r < R has block g, by the caller.
            unsafe {
                let x = self.x.as_ptr().add(g);
                let mut dot = [[_mm512_setzero_si512(); T]; R];
                if F::HALVES {
                    dot!(dot, F, (w, x, groups), 0, 4);
                    add_scaled!(acc, dot, w.scale, (x, groups));
                    dot = [[_mm512_setzero_si512(); T]; R];
                    dot!(dot, F, (w, x, groups), 4, 8);
                    add_scaled!(acc, dot, w.second, (x, groups));
                    continue;
                }
                dot!(dot, F, (w, x, groups), 0, 8);
                add_scaled!(acc, dot, w.scale, (x, groups));
                if F::MIN {
                    add_minimums!(acc, w.second, |r| _mm512_set1_ps((*x.add(r * groups)).s));
                }
            }
        }
        for (r, acc) in acc.iter().enumerate() {
            for (t, acc) in acc.iter().enumerate() {
                // SAFETY: the values are there, by the caller.
                unsafe { _mm512_storeu_ps(self.out.add(r * self.stride + t * TILE), *acc) };
            }
        }
    }

    /// Sums of earlier super-blocks are in `out`.
    ///
    /// # Safety
    /// As [`Block::run`] for R rows, and there are whole super-blocks of 8 groups.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
    unsafe fn super_blocks<F: Format, const T: usize, const R: usize>(&self) {
        let groups = self.groups;
        for (b, pairs) in self.pairs.chunks_exact(8).enumerate() {
            let first = self.x.as_ptr().wrapping_add(b * 8);
            let mut acc = [[_mm512_setzero_ps(); T]; R];
            for (g, w) in pairs.iter().enumerate() {
                self.ahead.prefetch(8 * b + g);
                // SAFETY: row r < R has the blocks of every group, by the caller.
                unsafe {
                    let x = first.add(g);
                    let mut dot = [[_mm512_setzero_si512(); T]; R];
                    if F::HALVES {
                        dot!(dot, F, (w, x, groups), 0, 4);
                        add_scaled!(acc, dot, w.scale);
                        if F::MIN {
                            let minimums = &self.half_minimums[8 * b + g];
                            add_minimums!(acc, minimums[0], |r| start_of(&*x.add(r * groups), 0));
                        }
                        dot = [[_mm512_setzero_si512(); T]; R];
                        dot!(dot, F, (w, x, groups), 4, 8);
                        add_scaled!(acc, dot, w.second);
                        if F::MIN {
                            let minimums = &self.half_minimums[8 * b + g];
                            add_minimums!(acc, minimums[1], |r| start_of(&*x.add(r * groups), 1));
                        }
                        continue;
                    }
                    dot!(dot, F, (w, x, groups), 0, 8);
                    add_scaled!(acc, dot, w.scale);
                    if F::MIN {
                        add_minimums!(acc, w.second, |r| _mm512_set1_ps((*x.add(r * groups)).s));
                    }
                }
            }
            for (r, acc) in acc.iter().enumerate() {
                for (t, acc) in acc.iter().enumerate() {
                    // SAFETY: the row's blocks and the values are there, by the caller.
                    unsafe {
                        let d = _mm512_set1_ps((*first.add(r * groups)).d);
                        let to = self.out.add(r * self.stride + t * TILE);
                        let sum = match self.is_first && b == 0 {
                            true => _mm512_setzero_ps(),
                            false => _mm512_loadu_ps(to),
                        };
                        _mm512_storeu_ps(to, _mm512_fmadd_ps(*acc, d, sum));
                    }
                }
            }
        }
    }
}
