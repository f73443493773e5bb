//! Matmuls of groups of rows, each with a matrix of its own, in one dispatch on the pool.

use super::blocking::{BlockingInput, partition_groups};
use super::dispatch::{BlockEnd, FirstRead, read_after};
use super::op::Matmul;
use super::run::SCRATCH;
use super::task::{QuantizedBlock, Scratch, Task};
use crate::context::Cpu;
use crate::loops::quantize::{Q8Block, QuantScheme};
use crate::packed::layout::GROUP;
use crate::pool::{ColumnBlock, GridList, GroupedMatrix, GroupedRows, RowGroup};

/// Division of a dispatch of groups into tasks; reuses its memory.
#[derive(Debug, Default)]
pub(crate) struct GroupPlan {
    grids: GridList,
    /// Most tasks of a claim.
    max_claim: usize,
    /// The scheme in which the output is quantised on the fly, if it is.
    output: Option<QuantScheme>,
}

/// A dispatch of a matmul for each group of rows.
#[derive(Clone, Copy)]
pub(crate) struct GroupDispatch<'a, 'n> {
    pub(crate) rows: &'a GroupedRows,
    pub(crate) plan: &'a GroupPlan,
    /// Whether all groups have one row and read the only row of activations.
    pub(crate) shares_row: bool,
    /// Whether rows of the output are in the order that they had before they were grouped.
    pub(crate) is_spread: bool,
    /// What each thread reads after the dispatch.
    pub(crate) first_read: FirstRead<'a, 'n>,
}

impl GroupPlan {
    /// Divides matmuls of these groups, given what each group reads. The output is quantised on the fly if it has a scheme.
    pub(crate) fn fill<'a>(
        &mut self,
        ctx: &Cpu,
        output: Option<QuantScheme>,
        groups: &[RowGroup],
        reads: impl Fn(usize) -> BlockingInput<'a>,
    ) {
        self.output = output;
        self.max_claim = partition_groups(ctx, output, groups, reads, &mut self.grids);
    }

    /// Output channels of a column.
    fn channels(&self) -> usize {
        if self.output.is_some() { GROUP } else { 1 }
    }

    /// The group, counted among those with rows, and the channel that a thread starts with.
    pub(crate) fn first_block(&self, ctx: &Cpu, thread: usize) -> Option<(usize, usize)> {
        let (index, column) = ctx.pool().first_block_of(self.grids.as_slice(), thread)?;
        Some((index, column * self.channels()))
    }
}

impl<'n> GroupDispatch<'_, 'n> {
    /// Computes the matmul of each group's rows. Activations are in the order of the groups.
    ///
    /// # Panics
    /// When sizes do not match, or the plan is one for an output that is quantised.
    pub(crate) fn run(
        &self,
        ctx: &Cpu,
        matmul: impl Fn(usize) -> Matmul<'n> + Sync,
        out: &mut [f32],
    ) {
        assert!(self.plan.output.is_none(), "a plan for blocks");
        self.blocks(ctx, matmul, out, |matmul, task, block, scratch| {
            matmul.write(ctx, task, block, scratch);
        });
    }

    /// As [`run`](GroupDispatch::run), with an output that is quantised on the fly, in the scheme of the plan. The channels of each
    /// matmul are whole tiles.
    ///
    /// # Panics
    /// As [`run`](GroupDispatch::run), or when the plan has no scheme.
    pub(crate) fn run_quantized(
        &self,
        ctx: &Cpu,
        matmul: impl Fn(usize) -> Matmul<'n> + Sync,
        out: &mut [Q8Block],
    ) {
        let Some(scheme) = self.plan.output else { panic!("a plan for values") };
        self.blocks(ctx, matmul, out, |matmul, task, block, scratch| {
            matmul.write_quantized(ctx, task, QuantizedBlock { scheme, block }, scratch);
        });
    }

    fn blocks<T: Send>(
        &self,
        ctx: &Cpu,
        matmul: impl Fn(usize) -> Matmul<'n> + Sync,
        out: &mut [T],
        write: impl Fn(&Matmul<'n>, Task<'_>, ColumnBlock<'_, T>, &mut Scratch) + Sync,
    ) {
        let (groups, all, channels) =
            (self.rows.groups(), self.rows.order().len(), self.plan.channels());
        let out_rows = if self.is_spread { self.rows.rows() } else { all };
        let row_len = out.len() / out_rows.max(1);
        for RowGroup { group, .. } in groups {
            let matmul = matmul(*group);
            assert_eq!(matmul.weight.len(), row_len * channels, "channels of out");
            matmul.check(if self.shares_row { 1 } else { all });
            matmul.sum_channels(ctx);
        }
        let weight = |index: usize| Some(matmul(groups.get(index)?.group).weight);
        let places = self.is_spread.then_some(self.rows);
        let matrix = GroupedMatrix { data: out, row_len, grids: &self.plan.grids, places };
        ctx.pool().grouped_mut(matrix, self.plan.max_claim, |index, rows, block, after| {
            let (end, after) = (block.end() * channels, after.times(channels));
            let end = BlockEnd { index, channel: end };
            let next = read_after(ctx, end, after, weight, self.first_read);
            let rows = if self.shares_row { 0..1 } else { rows };
            let task = Task { rows, until: after.until, next };
            SCRATCH.with_borrow_mut(|scratch| {
                write(&matmul(groups[index].group), task, block, scratch);
            });
        });
    }
}
