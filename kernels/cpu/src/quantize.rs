//! Quantised activation matrices.

use crate::context::Cpu;
use crate::loops::quantize::Q8Block;
use crate::loops::quantize_row::{InputScheme, RowScheme};
use crate::loops::rms_norm::RmsNormWeight;
use crate::packed::layout::GROUP;
use crate::rms_norm::each_normed;
use std::sync::atomic::{AtomicU32, Ordering};

/// Rows of `k` values, to be normalised first if `norm` is given.
#[derive(Debug)]
pub(crate) struct InputSource<'a> {
    /// `[m][k]`.
    pub(crate) x: &'a [f32],
    pub(crate) k: usize,
    pub(crate) norm: Option<RmsNormWeight<'a>>,
}

/// A quantised activation matrix; reuses its memory.
#[derive(Debug, Default)]
pub(crate) struct Q8Buffer {
    blocks: Vec<Q8Block>,
    groups: usize,
    /// As [`Q8Rows::shifts`].
    shifts: Vec<AtomicU32>,
}

impl Q8Buffer {
    /// Room for rows of `k` values without shifts; the contents are arbitrary.
    pub(crate) fn room(&mut self, rows: usize, k: usize) -> &mut [Q8Block] {
        self.groups = k / 32;
        self.shifts.clear();
        self.blocks.resize(rows * self.groups, Q8Block::default());
        &mut self.blocks
    }

    /// Quantises rows of `k` values: the rows of `x`, or their norms.
    pub(crate) fn fill(
        &mut self,
        ctx: &Cpu,
        scheme: impl Into<InputScheme>,
        source: &InputSource<'_>,
    ) {
        let scheme = scheme.into();
        let InputSource { x, k, norm } = source;
        let (rows, groups) = (x.len() / k, k / 32);
        self.room(rows, *k);
        if matches!(scheme, InputScheme::Row(RowScheme { with_min: true, .. })) {
            self.shifts.resize_with(rows, AtomicU32::default);
        }
        let shifts = &self.shifts[..];
        let kernels = ctx.kernels();
        let per_task = ctx.rows_per_task(rows, *k);
        ctx.pool().chunks_mut(&mut self.blocks, per_task * groups, |i, blocks| {
            let x = &x[i * per_task * k..];
            let companions = (i * per_task..).zip(blocks.chunks_exact_mut(groups));
            let rows = x.chunks_exact(*k).zip(companions);
            let quantize = |x: &[f32], (row, blocks): (usize, &mut [Q8Block])| match scheme {
                InputScheme::Blocks(scheme) => (kernels.quantize)(x, scheme, blocks),
                InputScheme::Row(scheme) => {
                    let shift = (kernels.quantize_row)(x, scheme, blocks);
                    let to = shifts.get(row);
                    to.into_iter().for_each(|to| to.store(shift.to_bits(), Ordering::Relaxed));
                }
            };
            let Some(norm) = norm else {
                return rows.for_each(|(x, companion)| quantize(x, companion));
            };
            each_normed(ctx, norm, rows, quantize);
        });
    }

    /// Copies rows of another matrix: row i is its row `from(i)`.
    pub(crate) fn gather(
        &mut self,
        ctx: &Cpu,
        all: &Q8Buffer,
        rows: usize,
        from: impl Fn(usize) -> usize + Sync,
    ) {
        let groups = all.groups;
        self.room(rows, groups * GROUP);
        let shifts = if all.shifts.is_empty() { 0 } else { rows };
        let shift = |row| AtomicU32::new(all.shifts[from(row)].load(Ordering::Relaxed));
        self.shifts.extend((0..shifts).map(shift));
        let per_task = ctx.rows_per_task(rows, groups * GROUP);
        ctx.pool().chunks_mut(&mut self.blocks, per_task * groups, |i, blocks| {
            for (row, to) in (i * per_task..).zip(blocks.chunks_exact_mut(groups)) {
                to.copy_from_slice(&all.blocks[from(row) * groups..][..groups]);
            }
        });
    }

    /// The quantised rows.
    pub(crate) fn rows(&self) -> Q8Rows<'_> {
        Q8Rows { blocks: &self.blocks, groups: self.groups, shifts: &self.shifts }
    }
}

/// Rows of quantised activations.
#[derive(Clone, Copy, Debug)]
pub struct Q8Rows<'a> {
    /// `[rows][groups]`.
    pub(crate) blocks: &'a [Q8Block],
    /// Groups of 32 columns per row.
    pub(crate) groups: usize,
    /// Bits of each row's value of integer 0; none if that is 0 in every row.
    shifts: &'a [AtomicU32],
}

impl<'a> Q8Rows<'a> {
    /// Rows of `groups` blocks each, in which integer 0 has the value 0.
    pub fn new(blocks: &'a [Q8Block], groups: usize) -> Q8Rows<'a> {
        Q8Rows { blocks, groups, shifts: &[] }
    }

    /// The value of integer 0 in a row.
    pub(crate) fn shift(&self, row: usize) -> f32 {
        self.shifts.get(row).map_or(0.0, |bits| f32::from_bits(bits.load(Ordering::Relaxed)))
    }

    /// Whether the value of integer 0 may differ from 0.
    pub(crate) fn has_shifts(&self) -> bool {
        !self.shifts.is_empty()
    }
}
