//! Attention whose keys and values are added up in a state: the rows of one head.
#![expect(
    unsafe_code,
    reason = "vectors are loaded from and stored to whole lines of a state, which may be in two places"
)]

mod lines;

use crate::pool::{Before, ColumnBlock, PlaceParts};
use crate::simd::f32x16::{F32x16, LANES};
use lapwing_model::op::{LinearAttentionOp, StateRule};
use lines::{Block, Line, decay, fade, known, line, of_columns, update};
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
    /// How much of the state stays: one value, or one for each value of a key. With decays, the time of each value.
    pub(crate) keep: Strided<'a>,
    /// How much is added, of all values or of each.
    pub(crate) rate: Strided<'a>,
    pub(crate) rule: StateRule,
    pub(crate) scale: f32,
    /// How much of all values, or of each, is added to what is read.
    pub(crate) skip: Option<&'a [f32]>,
    /// Logarithms of what stays of the state in a unit of time: `[blocks][keys][columns of the block]`.
    pub(crate) decays: Option<&'a [f32]>,
}

impl HeadRows<'_> {
    /// # Panics
    /// When lengths do not fit each other.
    fn check(&self, values_of_place: usize, out: &ColumnBlock<'_, f32>) {
        let (keys, values) = (self.k.len, self.v.len);
        assert!(keys > 0 && self.q.len == keys && out.width() == values, "queries, keys or values");
        let kept = if self.decays.is_some() { [values; 2] } else { [1, keys] };
        assert!(kept.contains(&self.keep.len), "{} kept values", self.keep.len);
        assert!(self.decays.is_none_or(|decays| decays.len() == keys * values), "decays");
        let wanted = LinearAttentionOp::state_values(1, keys, values);
        assert_eq!(values_of_place, wanted, "the state");
    }
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
                // SAFETY: by the caller; both blocks have as many lines as a key has values.
                let read = unsafe { step::<V>(head, row, &columns, state) };
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
    columns: &Range<usize>,
    mut state: Block,
) -> Line {
    let (k, q, keep) = (head.k.row(row), head.q.row(row), head.keep.row(row));
    // SAFETY: by the caller; lines have 16 values.
    unsafe {
        let keep = match (head.decays, keep) {
            (None, [keep]) => *keep,
            (decays, each) => {
                match decays {
                    None => fade::<V>(state, each),
                    Some(decays) => {
                        let of_block = state.lines * columns.start..state.lines * columns.end;
                        decay::<V>(state, &decays[of_block], of_columns(each, columns));
                    }
                }
                state.from = state.to;
                1.0
            }
        };
        let (v, keep) = (line::<V>(&head.v.row(row)[columns.clone()]), V::splat(keep));
        let rate = of_columns::<V>(head.rate.row(row), columns);
        let added = match head.rule {
            StateRule::Add => v,
            StateRule::Delta => v.sub(known::<V>(state, k).mul(keep)),
        };
        let read = update::<V>(state, [k, q], [keep, added.mul(rate)]);
        let read = read.mul(V::splat(head.scale));
        let read = match head.skip {
            Some(skip) => v.fma(of_columns(skip, columns), read),
            None => read,
        };
        let mut out = [0.0; LANES];
        read.store(out.as_mut_ptr());
        out
    }
}
