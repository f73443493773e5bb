//! Attention whose keys and values are added up in a state: the rows of one head.
#![expect(
    unsafe_code,
    reason = "vectors are loaded from and stored to whole lines of a state, which may be in two places"
)]

use crate::pool::{Before, ColumnBlock, PlaceParts};
use crate::simd::f32x16::{F32x16, LANES};
use lapwing_model::op::{LinearAttentionOp, StateRule};
use std::ops::Range;

/// Some values of each row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided<'a> {
    /// From the first of these values on.
    pub(crate) x: &'a [f32],
    /// Values from one row to the next.
    pub(crate) stride: usize,
    pub(crate) len: usize,
}

impl<'a> Strided<'a> {
    #[inline(always)]
    fn row(&self, row: usize) -> &'a [f32] {
        &self.x[row * self.stride..][..self.len]
    }
}

/// The rows of one head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadRows<'a> {
    pub(crate) q: Strided<'a>,
    pub(crate) k: Strided<'a>,
    pub(crate) v: Strided<'a>,
    /// How much of the state stays: one value, or one for each value of a key.
    pub(crate) keep: Strided<'a>,
    /// How much is added.
    pub(crate) rate: Strided<'a>,
    pub(crate) rule: StateRule,
    pub(crate) scale: f32,
    pub(crate) skip: Option<f32>,
}

impl HeadRows<'_> {
    /// # Panics
    /// When lengths do not fit each other.
    fn check(&self, values_of_place: usize, out: &ColumnBlock<'_, f32>) {
        let (keys, values) = (self.k.len, self.v.len);
        assert!(keys > 0 && self.q.len == keys && out.width() == values, "queries, keys or values");
        assert!(self.keep.len == 1 || self.keep.len == keys, "{} kept values", self.keep.len);
        let wanted = LinearAttentionOp::state_values(1, keys, values);
        assert_eq!(values_of_place, wanted, "the state");
    }
}

/// A line of a state: a row's values in a block of columns.
type Line = [f32; LANES];

const _: () = assert!(LANES == LinearAttentionOp::BLOCK, "a block of a state is a vector wide");

/// Lines of a state that are added up apart, so that additions need not wait for each other.
const SUMS: usize = 4;

/// A block of a state that a row changes: it reads one and writes the other, which may be the same.
#[derive(Clone, Copy)]
struct Block {
    from: *const Line,
    to: *mut Line,
    lines: usize,
}

/// Changes the state of a head by its rows, one after another, and makes what each reads. Each place of the state but the first has what
/// it is after the rows up to that one of `ends`, and goes on from the place before it; the last end is that of the rows. Blocks of
/// columns do not depend on each other, so that each goes through all rows in the first cache.
///
/// # Safety
/// The machine has the instructions of `V`.
///
/// # Panics
/// When lengths do not fit each other, or ends descend or are not those of the rows.
#[inline(always)]
pub(crate) unsafe fn linear_attention<V: F32x16>(
    head: &HeadRows<'_>,
    places: &mut PlaceParts<'_, f32>,
    ends: &[usize],
    out: &mut ColumnBlock<'_, f32>,
) {
    head.check(places.values(), out);
    assert!(ends.is_sorted() && ends.last() == Some(&out.rows()), "rows end at {ends:?}");
    for block in 0..head.v.len.div_ceil(LANES) {
        let lines = block * head.k.len..(block + 1) * head.k.len;
        let first = block * LANES;
        let columns = first..head.v.len.min(first + LANES);
        let mut row = 0;
        for (i, end) in ends.iter().enumerate() {
            let (before, to) = places.step(i);
            let to = &mut to.as_chunks_mut::<LANES>().0[lines.clone()];
            let from = entered(before, to, lines.clone(), row < *end);
            let mut state = Block { from, to: to.as_mut_ptr(), lines: to.len() };
            while row < *end {
                let mut v = [0.0; LANES];
                v[..columns.len()].copy_from_slice(&head.v.row(row)[columns.clone()]);
                // SAFETY: by the caller; both blocks have as many lines as a key has values.
                let read = unsafe { step::<V>(head, row, &v, state) };
                out.row_mut(row)[columns.clone()].copy_from_slice(&read[..columns.len()]);
                state.from = state.to;
                row += 1;
            }
        }
    }
}

/// The block that the first row reads before it writes to `to`. Without a row, `to` becomes it.
#[inline(always)]
fn entered(
    before: Before<'_, f32>,
    to: &mut [Line],
    lines: Range<usize>,
    has_rows: bool,
) -> *const Line {
    match before {
        Before::Nothing => to.fill([0.0; LANES]),
        Before::Here => {}
        Before::There(from) => {
            let from = &from.as_chunks::<LANES>().0[lines];
            if has_rows {
                return from.as_ptr();
            }
            to.copy_from_slice(from);
        }
    }
    to.as_ptr()
}

/// One row in one block of columns.
///
/// # Safety
/// The machine has the instructions of `V`; the blocks have as many lines as a key has values.
#[inline(always)]
unsafe fn step<V: F32x16>(
    head: &HeadRows<'_>,
    row: usize,
    values: &Line,
    mut state: Block,
) -> Line {
    let (k, q, keep) = (head.k.row(row), head.q.row(row), head.keep.row(row));
    // SAFETY: by the caller; lines have 16 values.
    unsafe {
        let keep = match keep {
            [keep] => *keep,
            each => {
                fade::<V>(state, each);
                state.from = state.to;
                1.0
            }
        };
        let (v, keep, rate) = (V::load(values.as_ptr()), V::splat(keep), head.rate.row(row)[0]);
        let added = match head.rule {
            StateRule::Add => v,
            StateRule::Delta => v.sub(known::<V>(state, k).mul(keep)),
        };
        let read = update::<V>(state, [k, q], [keep, added.mul(V::splat(rate))]);
        let read = read.mul(V::splat(head.scale));
        let read = match head.skip {
            Some(skip) => v.fma(V::splat(skip), read),
            None => read,
        };
        let mut out = [0.0; LANES];
        read.store(out.as_mut_ptr());
        out
    }
}

/// Multiplies each line by a factor of its own.
///
/// # Safety
/// As [`step`]; there are as many factors as lines.
#[inline(always)]
unsafe fn fade<V: F32x16>(state: Block, factors: &[f32]) {
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
/// As [`step`].
#[inline(always)]
unsafe fn known<V: F32x16>(state: Block, k: &[f32]) -> V {
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
/// As [`step`].
#[inline(always)]
unsafe fn update<V: F32x16>(state: Block, [k, q]: [&[f32]; 2], [keep, added]: [V; 2]) -> V {
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
