//! Lines of a state: what a row changes, and what it reads.
#![expect(
    unsafe_code,
    reason = "vectors are loaded from and stored to lines of a state through pointers"
)]

use crate::simd::f32x16::{F32x16, LANES};
use lapwing_model::op::LinearAttentionOp;
use std::f32::consts::LOG2_E;
use std::ops::Range;

/// A line of a state: a row's values in a block of columns.
pub(super) type Line = [f32; LANES];

const _: () = assert!(LANES == LinearAttentionOp::BLOCK, "a block of a state is a vector wide");

/// Lines of a state that are added up apart, so that additions need not wait for each other.
const SUMS: usize = 4;

/// A block of a state that a row changes: it reads one and writes the other, which may be the same.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) from: *const Line,
    pub(super) to: *mut Line,
    pub(super) lines: usize,
}

/// A line of up to 16 values; the others are 0.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn line<V: F32x16>(values: &[f32]) -> V {
    if let Some(whole) = values.first_chunk::<LANES>() {
        // SAFETY: by the caller.
        return unsafe { V::load(whole.as_ptr()) };
    }
    let mut line = [0.0; LANES];
    line[..values.len()].copy_from_slice(values);
    // SAFETY: by the caller.
    unsafe { V::load(line.as_ptr()) }
}

/// The values of some columns, of which there may be one for all.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn of_columns<V: F32x16>(values: &[f32], columns: &Range<usize>) -> V {
    // SAFETY: by the caller.
    unsafe {
        match values {
            [one] => V::splat(*one),
            each => line(&each[columns.clone()]),
        }
    }
}

/// Multiplies each value by exp(time · decay), with a time for each column and a decay of its own: `[lines][columns]`.
///
/// # Safety
/// The machine has the instructions of `V`; the blocks have as many lines as `state.lines`.
#[inline(always)]
pub(super) unsafe fn decay<V: F32x16>(state: Block, decays: &[f32], times: V) {
    let Block { from, to, lines } = state;
    // SAFETY: by the caller; a line has 16 values.
    unsafe {
        let times = times.mul(V::splat(LOG2_E));
        for (i, decays) in decays.chunks_exact(decays.len() / lines).enumerate() {
            let stays = line::<V>(decays).mul(times).exp2();
            V::load(from.add(i).cast()).mul(stays).store(to.add(i).cast());
        }
    }
}

/// Multiplies each line by a factor of its own.
///
/// # Safety
/// The machine has the instructions of `V`; the blocks have as many lines as `state.lines`.
#[inline(always)]
pub(super) unsafe fn fade<V: F32x16>(state: Block, factors: &[f32]) {
    let Block { from, to, lines } = state;
    for (i, factor) in factors[..lines].iter().enumerate() {
        // SAFETY: by the caller; a line has 16 values.
        unsafe {
            let faded = V::load(from.add(i).cast()).mul(V::splat(*factor));
            faded.store(to.add(i).cast());
        }
    }
}

/// The sum of the lines, each times a value of the key.
///
/// # Safety
/// The machine has the instructions of `V`; the blocks have as many lines as `state.lines`.
#[inline(always)]
pub(super) unsafe fn known<V: F32x16>(state: Block, k: &[f32]) -> V {
    let (from, k) = (state.from, &k[..state.lines]);
    let last = k.len() / SUMS * SUMS;
    // SAFETY: by the caller; lines have 16 values.
    unsafe {
        let line = |i: usize| V::load(from.add(i).cast());
        let mut sums = [V::splat(0.0); SUMS];
        for first in (0..last).step_by(SUMS) {
            for i in 0..SUMS {
                sums[i] = line(first + i).fma(V::splat(k[first + i]), sums[i]);
            }
        }
        for (i, k) in k.iter().enumerate().skip(last) {
            sums[0] = line(i).fma(V::splat(*k), sums[0]);
        }
        total(sums)
    }
}

/// Makes each line keep·line + k·added, and returns the sum of the new ones, each times a value of the query.
///
/// # Safety
/// The machine has the instructions of `V`; the blocks have as many lines as `state.lines`.
#[inline(always)]
pub(super) unsafe fn update<V: F32x16>(
    state: Block,
    [k, q]: [&[f32]; 2],
    [keep, added]: [V; 2],
) -> V {
    let Block { from, to, lines } = state;
    let (k, q) = (&k[..lines], &q[..lines]);
    let last = lines / SUMS * SUMS;
    // SAFETY: by the caller; lines have 16 values.
    unsafe {
        let change = |i: usize, sum: V| {
            let new = V::splat(k[i]).fma(added, V::load(from.add(i).cast()).mul(keep));
            new.store(to.add(i).cast());
            new.fma(V::splat(q[i]), sum)
        };
        let mut sums = [V::splat(0.0); SUMS];
        for first in (0..last).step_by(SUMS) {
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = change(first + i, *sum);
            }
        }
        for i in last..lines {
            sums[0] = change(i, sums[0]);
        }
        total(sums)
    }
}

/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn total<V: F32x16>([a, b, c, d]: [V; SUMS]) -> V {
    // SAFETY: by the caller.
    unsafe { a.add(b).add(c.add(d)) }
}
