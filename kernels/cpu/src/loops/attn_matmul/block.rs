//! Register blocks of an attention matmul.

use super::{MatmulDims, MicroKernel};
use crate::simd::f32x16::{F32x16, LANES};
use crate::simd::outline::Outlined;
use crate::simd::prefetch::{CACHE_LINE, prefetch_rows};
use std::ops::Range;

/// Vectors of `b` per cache line.
const fn per_line<M: MicroKernel>() -> usize {
    CACHE_LINE.div_ceil(LANES * size_of::<M::B>())
}

/// Rows of `b` that are prefetched at a time.
const STRIP: usize = 8;

/// An operand of a matmul.
#[derive(Clone, Copy)]
pub(super) struct Strided<T> {
    /// The first element that is read.
    pub(super) at: *const T,
    /// Elements from one row to the next.
    pub(super) stride: usize,
}

/// Register blocks beside each other: some rows × C vectors each.
pub(super) struct Block<'a, M: MicroKernel, const C: usize> {
    pub(super) a: Strided<M::A>,
    pub(super) b: Strided<M::B>,
    pub(super) c: *mut f32,
    /// Their chunks, of which `b` and `c` begin with the first.
    pub(super) columns: Range<usize>,
    pub(super) dims: &'a MatmulDims<'a>,
    /// Distance from what is read to what is prefetched.
    pub(super) next: Option<usize>,
}

/// A [`Block`] of R rows.
struct RowsOf<'a, M: MicroKernel, const R: usize, const C: usize>(Block<'a, M, C>);

impl<M: MicroKernel, const C: usize> Block<'_, M, C> {
    /// Computes R rows, and returns their number.
    ///
    /// # Safety
    /// R rows of the chunks are inside the matrices.
    #[inline(always)]
    pub(super) unsafe fn run<const R: usize>(self) -> usize {
        // SAFETY: by the caller.
        unsafe { M::outline(RowsOf::<M, R, C>(self)) };
        R
    }

    /// Computes R rows of C vectors.
    ///
    /// # Safety
    /// As [`Block::run`], for C chunks from `b` and `c` on.
    #[inline(always)]
    unsafe fn vectors<const R: usize>(&self, mut b: *const M::B, c: *mut f32, next: Option<usize>) {
        let Block { mut a, b: Strided { stride: b_stride, .. }, dims, .. } = *self;
        // SAFETY: by the caller; the depth is that of `a` and `b`.
        unsafe {
            let mut acc = [[M::Sums::splat(0.0); C]; R];
            if dims.add {
                for (r, acc) in acc.iter_mut().enumerate() {
                    for (j, acc) in acc.iter_mut().enumerate() {
                        *acc = M::Sums::load(c.add(r * dims.c_stride + j * LANES));
                    }
                }
            }
            let b_rows = M::A_DEPTH / M::B_DEPTH;
            let mut left = dims.depth / M::A_DEPTH;
            while left > 0 {
                let steps = left.min(STRIP / b_rows);
                if let Some(next) = next {
                    let from = b.wrapping_byte_add(next).cast();
                    let (rows, stride) = (steps * b_rows, b_stride * size_of::<M::B>());
                    let bytes = C * LANES * size_of::<M::B>();
                    prefetch_rows(from, rows, stride, bytes, dims.prefetch_hint);
                }
                for _ in 0..steps {
                    step::<M, R, C, false>(a, Strided { at: b, stride: b_stride }, &mut acc);
                    a.at = a.at.wrapping_add(1);
                    b = b.wrapping_add(b_rows * b_stride);
                }
                left -= steps;
            }
            if !dims.depth.is_multiple_of(M::A_DEPTH) {
                step::<M, R, C, true>(a, Strided { at: b, stride: b_stride }, &mut acc);
            }
            for (r, acc) in acc.iter().enumerate() {
                for (j, acc) in acc.iter().enumerate() {
                    acc.store(c.add(r * dims.c_stride + j * LANES));
                }
            }
        }
    }
}

impl<M: MicroKernel, const R: usize, const C: usize> Outlined for RowsOf<'_, M, R, C> {
    #[inline(always)]
    unsafe fn run(self) {
        let Block { b: Strided { at: mut b, .. }, mut c, ref columns, next, .. } = self.0;
        for at in columns.clone().step_by(C) {
            // The vectors of a line are prefetched with its first.
            let next = next.filter(|_| at.is_multiple_of(per_line::<M>()) || C > 1);
            // SAFETY: as [`Block::run`] demands.
            unsafe { self.0.vectors::<R>(b, c, next) };
            (b, c) = (b.wrapping_add(C * LANES), c.wrapping_add(C * LANES));
        }
    }
}

/// # Safety
/// As [`Block::run`] demands, at a position inside the depth; with `TAIL`, the depth ends after the first value.
#[inline(always)]
unsafe fn step<M: MicroKernel, const R: usize, const C: usize, const TAIL: bool>(
    a: Strided<M::A>,
    b: Strided<M::B>,
    acc: &mut [[M::Sums; C]; R],
) {
    // SAFETY: by the caller.
    unsafe {
        let mut right = [M::right::<TAIL>(b.at, b.stride); C];
        for (j, right) in right.iter_mut().enumerate().skip(1) {
            *right = M::right::<TAIL>(b.at.add(j * LANES), b.stride);
        }
        for (r, acc) in acc.iter_mut().enumerate() {
            let left = M::left::<TAIL>(a.at.add(r * a.stride));
            // Not `zip`: below the highest optimisation, as in tests, its `next` is a call.
            for (j, acc) in acc.iter_mut().enumerate() {
                *acc = M::add(left, right[j], *acc);
            }
        }
    }
}
