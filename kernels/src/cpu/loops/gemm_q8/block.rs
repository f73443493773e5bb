//! Sums of some rows times a tile.

use super::dot::{ActRows, Int8Dot, ROWS_MAX};
use super::weights::{Source, Weights};
use crate::cpu::loops::formats::Format;
use crate::cpu::loops::quantize::Q8Block;
use crate::cpu::packed::layout::TILE;
use crate::cpu::simd::f32x16::F32x16;

/// Some rows times a tile.
pub(super) struct RowBlock {
    pub(super) x: *const Q8Block,
    /// Distance of rows in the activations.
    pub(super) row_groups: usize,
    /// Whether nothing was summed before.
    pub(super) is_first: bool,
    pub(super) groups: usize,
    pub(super) rows: usize,
    /// Distance of rows in the output.
    pub(super) stride: usize,
}

impl RowBlock {
    /// # Safety
    /// The machine has the instructions of `D`; there are `rows` rows of `groups` blocks at `x`,
    /// `row_groups` apart; the source has `groups` groups, from a multiple of 8 on, and all of them
    /// or a multiple of 8 unless they are the last.
    #[inline(always)]
    pub(super) unsafe fn of<D: Int8Dot, F: Format, S: Source<D, F>>(
        &self,
        source: S,
        out: &mut [f32],
    ) {
        const { assert!(D::ROWS <= ROWS_MAX) };
        assert!(out.len() >= (self.rows - 1) * self.stride + TILE, "out is too short");
        let to = out.as_mut_ptr();
        // SAFETY: by the caller, and there are 16 values for each row.
        unsafe {
            match self.rows {
                1 => self.rows::<D, F, S, 1>(source, to),
                2 => self.rows::<D, F, S, 2>(source, to),
                3 => self.rows::<D, F, S, 3>(source, to),
                4 => self.rows::<D, F, S, 4>(source, to),
                rows => unreachable!("{rows} rows are several blocks"),
            }
        }
    }

    /// # Safety
    /// As [`RowBlock::of`] for R rows, with 16 values at R multiples of `stride` from `out`.
    #[inline(always)]
    unsafe fn rows<D: Int8Dot, F: Format, S: Source<D, F>, const R: usize>(
        &self,
        mut source: S,
        out: *mut f32,
    ) {
        if R > D::ROWS {
            unreachable!("{R} rows are several blocks");
        }
        // SAFETY: by the caller.
        unsafe {
            let mut partial = [D::Floats::splat(0.0); R];
            let mut acc = partial;
            if !self.is_first {
                for (r, acc) in acc.iter_mut().enumerate() {
                    *acc = D::Floats::load(out.add(r * self.stride));
                }
            }
            for g in 0..self.groups {
                let w = source.group(g);
                let x = ActRows {
                    first: self.x.add(g),
                    stride: self.row_groups * size_of::<Q8Block>(),
                };
                if F::GROUPS == 1 {
                    add::<D, F, _, R>(&w, x, &mut acc);
                    continue;
                }
                add::<D, F, _, R>(&w, x, &mut partial);
                if g % 8 == 7 {
                    for r in 0..R {
                        acc[r] = partial[r].fma(D::Floats::splat(x.block(r).d), acc[r]);
                        partial[r] = D::Floats::splat(0.0);
                    }
                }
            }
            for (r, acc) in acc.iter().enumerate() {
                acc.store(out.add(r * self.stride));
            }
        }
    }
}

/// Adds one group: `sum += scale·d·(start + Σ q·x)`, then `sum += min·s`; d is 1 where
/// super-blocks are multiplied with theirs later.
///
/// # Safety
/// As [`Int8Dot`] says, and there are R rows.
#[inline(always)]
unsafe fn add<D: Int8Dot, F: Format, W: Weights<D, F>, const R: usize>(
    w: &W,
    x: ActRows,
    sum: &mut [D::Floats; R],
) {
    // SAFETY: by the caller.
    unsafe {
        if F::HALVES {
            let (dots, scale) = (w.dots::<R, 0, 4>(x), w.scale(0));
            for r in 0..R {
                sum[r] = D::floats(dots[r]).fma(scale, sum[r]);
            }
            let (dots, scale) = (w.dots::<R, 4, 8>(x), w.scale(1));
            for r in 0..R {
                sum[r] = D::floats(dots[r]).fma(scale, sum[r]);
            }
            return;
        }
        let dots = w.dots::<R, 0, 8>(x);
        for r in 0..R {
            let mut scale = w.scale(0);
            if F::GROUPS == 1 {
                scale = scale.mul(D::Floats::splat(x.block(r).d));
            }
            sum[r] = D::floats(dots[r]).fma(scale, sum[r]);
            if F::MIN {
                sum[r] = w.min().fma(D::Floats::splat(x.block(r).s), sum[r]);
            }
        }
    }
}
