//! Quantised activation matrices.

use crate::cpu::context::Cpu;
use crate::cpu::loops::quantize::{Q8Block, QuantScheme};
use crate::cpu::loops::rms_norm::RmsNormWeight;
use crate::cpu::rms_norm::each_normed;

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
}

impl Q8Buffer {
    /// Room for rows of `k` values; the contents are arbitrary.
    pub(crate) fn room(&mut self, rows: usize, k: usize) -> &mut [Q8Block] {
        self.groups = k / 32;
        self.blocks.resize(rows * self.groups, Q8Block::default());
        &mut self.blocks
    }

    /// Quantises rows of `k` values: the rows of `x`, or their norms.
    pub(crate) fn fill(&mut self, ctx: &Cpu, scheme: QuantScheme, source: &InputSource<'_>) {
        let InputSource { x, k, norm } = source;
        let (rows, groups) = (x.len() / k, k / 32);
        self.room(rows, *k);
        let kernels = ctx.kernels();
        let per_task = ctx.rows_per_task(rows, *k);
        ctx.pool().chunks_mut(&mut self.blocks, per_task * groups, |i, blocks| {
            let x = &x[i * per_task * k..];
            let rows = x.chunks_exact(*k).zip(blocks.chunks_exact_mut(groups));
            let Some(norm) = norm else {
                return rows.for_each(|(x, blocks)| (kernels.quantize)(x, scheme, blocks));
            };
            each_normed(ctx, norm, rows, |x, blocks| (kernels.quantize)(x, scheme, blocks));
        });
    }

    /// The quantised rows.
    pub(crate) fn rows(&self) -> Q8Rows<'_> {
        Q8Rows { blocks: &self.blocks, groups: self.groups }
    }
}

/// Rows of quantised activations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Q8Rows<'a> {
    /// `[rows][groups]`.
    pub(crate) blocks: &'a [Q8Block],
    /// Groups of 32 columns per row.
    pub(crate) groups: usize,
}
