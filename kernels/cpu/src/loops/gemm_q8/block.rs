//! A register block: some rows × one tile.

use super::dot::{ActRows, Int8Dot, ROWS_MAX};
use super::weights::{GroupSource, GroupWeights};
use crate::loops::formats::{Format, prefetch_group};
use crate::loops::prefetch_stream::PrefetchStream;
use crate::loops::quantize::Q8Block;
use crate::packed::layout::TILE;
use crate::simd::f32x16::F32x16;
use crate::simd::outline::Outlined;
use std::marker::PhantomData;

/// The groups whose successors a block prefetches, a fixed distance ahead. The blocks of a panel take
/// turns, so that memory is busy during all of them.
#[derive(Clone, Copy)]
pub(super) struct PrefetchTurns {
    pub(super) stream: PrefetchStream,
    /// Address of the panel's first group; only that of the values counts.
    pub(super) from: *const u8,
    /// The first group that has a turn, and the distance of turns.
    pub(super) first: usize,
    pub(super) every: usize,
}

/// A register block: some rows × one tile.
#[derive(Clone, Copy)]
pub(super) struct RowBlock {
    pub(super) x: *const Q8Block,
    /// Distance of rows in the activations, in groups.
    pub(super) row_groups: usize,
    /// Whether the sums start at zero; otherwise they continue those in the output.
    pub(super) is_first: bool,
    pub(super) groups: usize,
    pub(super) rows: usize,
    /// Distance of rows in the output, in values.
    pub(super) stride: usize,
    pub(super) prefetch: PrefetchTurns,
}

impl RowBlock {
    /// # Safety
    /// The machine has the instructions of `D`. `x` has `rows` rows of `groups` blocks,
    /// `row_groups` apart. The source has `groups` groups, which start at a multiple of 8; their
    /// number is a multiple of 8 unless they are the last.
    #[inline(always)]
    pub(super) unsafe fn run<D: Int8Dot, F: Format, S: GroupSource<D, F>>(
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
                1 => self.outlined::<D, F, S, 1>(source, to),
                2 => self.outlined::<D, F, S, 2>(source, to),
                3 => self.outlined::<D, F, S, 3>(source, to),
                4 => self.outlined::<D, F, S, 4>(source, to),
                rows => unreachable!("{rows} rows are several blocks"),
            }
        }
    }

    /// As [`RowBlock::rows`], in a function of its own.
    ///
    /// # Safety
    /// As [`RowBlock::rows`].
    #[inline(always)]
    unsafe fn outlined<D: Int8Dot, F: Format, S: GroupSource<D, F>, const R: usize>(
        &self,
        source: S,
        out: *mut f32,
    ) {
        if const { R > D::ROWS || R < S::ROWS_MIN } {
            unreachable!("a block of {R} rows");
        }
        // SAFETY: by the caller.
        unsafe {
            D::outline(RowsOf::<D, F, S, R> { block: *self, source, out, kind: PhantomData });
        }
    }

    /// # Safety
    /// As [`RowBlock::run`] for R rows, with 16 values at R multiples of `stride` from `out`.
    #[inline(always)]
    unsafe fn rows<D: Int8Dot, F: Format, S: GroupSource<D, F>, const R: usize>(
        &self,
        mut source: S,
        out: *mut f32,
    ) {
        // SAFETY: by the caller.
        unsafe {
            let mut partial = [D::Floats::splat(0.0); R];
            let mut acc = partial;
            if !self.is_first {
                for (r, acc) in acc.iter_mut().enumerate() {
                    *acc = D::Floats::load(out.add(r * self.stride));
                }
            }
            let PrefetchTurns { stream, from, first, every } = self.prefetch;
            let mut turn = first;
            for g in 0..self.groups {
                if g == turn {
                    prefetch_group::<F>(stream, from, g);
                    turn += every;
                }
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

/// A [`RowBlock`] of R rows.
struct RowsOf<D, F, S, const R: usize> {
    block: RowBlock,
    source: S,
    out: *mut f32,
    kind: PhantomData<(D, F)>,
}

impl<D: Int8Dot, F: Format, S: GroupSource<D, F>, const R: usize> Outlined for RowsOf<D, F, S, R> {
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: as [`RowBlock::rows`] demands.
        unsafe { self.block.rows::<D, F, S, R>(self.source, self.out) }
    }
}

/// Adds one group, or one half after the other: `sum += scale·d·(start + Σ q·x)`, then `sum += min·s`. For super-blocks d
/// is 1 here; their scale is multiplied at the end.
///
/// # Safety
/// As [`Int8Dot`] says, and there are R rows.
#[inline(always)]
unsafe fn add<D: Int8Dot, F: Format, W: GroupWeights<D, F>, const R: usize>(
    w: &W,
    x: ActRows,
    sum: &mut [D::Floats; R],
) {
    // SAFETY: by the caller.
    unsafe {
        if F::HALVES {
            let (dots, scale) = (w.dot::<R, 0, 4>(x), w.scale(0));
            for r in 0..R {
                sum[r] = D::floats(dots[r]).fma(of_block::<D, F>(scale, x, r), sum[r]);
                if F::MIN {
                    sum[r] = w.min(0).fma(D::Floats::splat(x.block(r).half_sum(0)), sum[r]);
                }
            }
            let (dots, scale) = (w.dot::<R, 4, 8>(x), w.scale(1));
            for r in 0..R {
                sum[r] = D::floats(dots[r]).fma(of_block::<D, F>(scale, x, r), sum[r]);
                if F::MIN {
                    sum[r] = w.min(1).fma(D::Floats::splat(x.block(r).half_sum(1)), sum[r]);
                }
            }
            return;
        }
        let (dots, scale) = (w.dot::<R, 0, 8>(x), w.scale(0));
        for r in 0..R {
            sum[r] = D::floats(dots[r]).fma(of_block::<D, F>(scale, x, r), sum[r]);
            if F::MIN {
                sum[r] = w.min(0).fma(D::Floats::splat(x.block(r).s), sum[r]);
            }
        }
    }
}

/// The scale of weights times that of the activations of row `r`, unless this is multiplied at the end.
///
/// # Safety
/// As [`Int8Dot`] says, and there is a row `r`.
#[inline(always)]
unsafe fn of_block<D: Int8Dot, F: Format>(scale: D::Floats, x: ActRows, r: usize) -> D::Floats {
    if F::GROUPS > 1 {
        return scale;
    }
    // SAFETY: by the caller.
    unsafe { scale.mul(D::Floats::splat(x.block(r).d)) }
}
