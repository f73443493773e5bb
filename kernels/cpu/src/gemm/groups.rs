//! Matmuls of groups of rows, each with a matrix of its own, in one dispatch on the pool.

use super::blocking::{BlockingInput, partition_groups};
use super::dispatch::{BlockEnd, FirstRead, read_after};
use super::op::Matmul;
use super::run::SCRATCH;
use super::task::Task;
use crate::context::Cpu;
use crate::packed::OutputChannels;
use crate::pool::{GridList, GroupedMatrix, GroupedRows, RowGroup};

/// Division of a dispatch of groups into tasks; reuses its memory.
#[derive(Debug, Default)]
pub(crate) struct GroupPlan {
    grids: GridList,
    /// Most tasks of a claim.
    max_claim: usize,
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
    /// Divides matmuls of these groups, given the output channels of a group and whether they have gates.
    pub(crate) fn fill<'a>(
        &mut self,
        ctx: &Cpu,
        groups: &[RowGroup],
        is_gated: bool,
        weight: impl Fn(usize) -> OutputChannels<'a>,
    ) {
        let reads = |group| BlockingInput { weight: weight(group), is_gated };
        self.max_claim = partition_groups(ctx, 1, groups, reads, &mut self.grids);
    }

    /// The group, counted among those with rows, and the column that a thread starts with.
    pub(crate) fn first_block(&self, ctx: &Cpu, thread: usize) -> Option<(usize, usize)> {
        ctx.pool().first_block_of(self.grids.as_slice(), thread)
    }
}

impl<'n> GroupDispatch<'_, 'n> {
    /// Computes the matmul of each group's rows, to rows of `row_len` values. Activations are in the order of the groups.
    ///
    /// # Panics
    /// When the sizes of a matmul do not match.
    pub(crate) fn run(
        &self,
        ctx: &Cpu,
        matmul: impl Fn(usize) -> Matmul<'n> + Sync,
        row_len: usize,
        out: &mut [f32],
    ) {
        let groups = self.rows.groups();
        let inputs = if self.shares_row { 1 } else { self.rows.order().len() };
        for RowGroup { group, .. } in groups {
            let matmul = matmul(*group);
            matmul.check(inputs);
            matmul.sum_channels(ctx);
        }
        let weight = |index: usize| Some(matmul(groups.get(index)?.group).weight);
        let places = self.is_spread.then_some(self.rows);
        let matrix = GroupedMatrix { data: out, row_len, grids: &self.plan.grids, places };
        ctx.pool().grouped_mut(matrix, self.plan.max_claim, |index, rows, block, after| {
            let end = BlockEnd { index, channel: block.end() };
            let next = read_after(ctx, end, after, weight, self.first_read);
            let rows = if self.shares_row { 0..1 } else { rows };
            let task = Task { rows, until: after.until, next };
            SCRATCH.with_borrow_mut(|scratch| {
                matmul(groups[index].group).write(ctx, task, block, scratch);
            });
        });
    }
}
