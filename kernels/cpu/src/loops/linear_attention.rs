//! Attention whose keys and values are added up in a state: the rows of one head.
#![expect(unsafe_code, reason = "vectors are loaded through pointers into whole lines of a state")]

use crate::pool::ColumnBlock;
use crate::simd::f32x16::{F32x16, LANES};
use lapwing_model::op::{LinearAttentionOp, StateRule};

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
    fn check(&self, state: &[f32], out: &ColumnBlock<'_, f32>) {
        let (keys, values) = (self.k.len, self.v.len);
        assert!(keys > 0 && self.q.len == keys && out.width() == values, "queries, keys or values");
        assert!(self.keep.len == 1 || self.keep.len == keys, "{} kept values", self.keep.len);
        assert_eq!(state.len(), LinearAttentionOp::state_values(1, keys, values), "the state");
    }
}

/// A line of a state: a row's values in a block of columns.
type Line = [f32; LANES];

const _: () = assert!(LANES == LinearAttentionOp::BLOCK, "a block of a state is a vector wide");

/// Lines of a state that are added up apart, so that additions need not wait for each other.
const SUMS: usize = 4;

/// Changes the state of a head by its rows, one after another, and makes what each reads. Blocks of columns do not depend on each other.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn linear_attention<V: F32x16>(
    head: &HeadRows<'_>,
    state: &mut [f32],
    out: &mut ColumnBlock<'_, f32>,
) {
    head.check(state, out);
    let (lines, _) = state.as_chunks_mut::<LANES>();
    for (block, lines) in lines.chunks_exact_mut(head.k.len).enumerate() {
        let first = block * LANES;
        let columns = first..head.v.len.min(first + LANES);
        for row in 0..out.rows() {
            let mut v = [0.0; LANES];
            v[..columns.len()].copy_from_slice(&head.v.row(row)[columns.clone()]);
            // SAFETY: by the caller.
            let read = unsafe { step::<V>(head, row, &v, lines) };
            out.row_mut(row)[columns.clone()].copy_from_slice(&read[..columns.len()]);
        }
    }
}

/// One row in one block of columns.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn step<V: F32x16>(
    head: &HeadRows<'_>,
    row: usize,
    values: &Line,
    lines: &mut [Line],
) -> Line {
    let (k, q, keep) = (head.k.row(row), head.q.row(row), head.keep.row(row));
    // SAFETY: by the caller; lines have 16 values.
    unsafe {
        let keep = match keep {
            [keep] => *keep,
            each => {
                fade::<V>(lines, each);
                1.0
            }
        };
        let (v, keep, rate) = (V::load(values.as_ptr()), V::splat(keep), head.rate.row(row)[0]);
        let added = match head.rule {
            StateRule::Add => v,
            StateRule::Delta => v.sub(known::<V>(lines, k).mul(keep)),
        };
        let read = update::<V>(lines, [k, q], [keep, added.mul(V::splat(rate))]);
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
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn fade<V: F32x16>(lines: &mut [Line], factors: &[f32]) {
    for (line, factor) in lines.iter_mut().zip(factors) {
        // SAFETY: by the caller; a line has 16 values.
        unsafe { V::load(line.as_ptr()).mul(V::splat(*factor)).store(line.as_mut_ptr()) };
    }
}

/// The sum of the lines, each times a value of the key.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn known<V: F32x16>(lines: &[Line], k: &[f32]) -> V {
    let ((lines, last), (k, last_k)) = (lines.as_chunks::<SUMS>(), k.as_chunks::<SUMS>());
    // SAFETY: by the caller; lines have 16 values.
    unsafe {
        let mut sums = [V::splat(0.0); SUMS];
        for (lines, k) in lines.iter().zip(k) {
            for i in 0..SUMS {
                sums[i] = V::load(lines[i].as_ptr()).fma(V::splat(k[i]), sums[i]);
            }
        }
        for (line, k) in last.iter().zip(last_k) {
            sums[0] = V::load(line.as_ptr()).fma(V::splat(*k), sums[0]);
        }
        total(sums)
    }
}

/// Makes each line keep·line + k·added, and returns the sum of the new ones, each times a value of the query.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn update<V: F32x16>(lines: &mut [Line], [k, q]: [&[f32]; 2], [keep, added]: [V; 2]) -> V {
    let (lines, last) = lines.as_chunks_mut::<SUMS>();
    let ((k, last_k), (q, last_q)) = (k.as_chunks::<SUMS>(), q.as_chunks::<SUMS>());
    // SAFETY: by the caller; lines have 16 values.
    unsafe {
        let mut sums = [V::splat(0.0); SUMS];
        for (lines, (k, q)) in lines.iter_mut().zip(k.iter().zip(q)) {
            for i in 0..SUMS {
                let new = V::splat(k[i]).fma(added, V::load(lines[i].as_ptr()).mul(keep));
                new.store(lines[i].as_mut_ptr());
                sums[i] = new.fma(V::splat(q[i]), sums[i]);
            }
        }
        for (line, (k, q)) in last.iter_mut().zip(last_k.iter().zip(last_q)) {
            let new = V::splat(*k).fma(added, V::load(line.as_ptr()).mul(keep));
            new.store(line.as_mut_ptr());
            sums[0] = new.fma(V::splat(*q), sums[0]);
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
