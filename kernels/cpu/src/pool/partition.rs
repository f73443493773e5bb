//! Divides one or several matrices into blocks, which are all tasks of one job.
#![expect(unsafe_code, reason = "tasks write disjoint parts of the matrices")]

use super::blocks::{Base, ColumnBlock};
use super::grids::{AfterBlock, BlockGrid, BlockRun, GridList, JobGrid, JobGrids};
use super::grouped_rows::GroupedRows;
use super::task_queue::TaskQueue;
use super::thread_pool::Pool;
use std::marker::PhantomData;
use std::ops::Range;

/// A matrix that is divided into blocks.
#[derive(Debug)]
pub(crate) struct PartitionedMatrix<'a, T> {
    pub(crate) data: &'a mut [T],
    pub(crate) blocks: BlockGrid,
}

/// A matrix of which each group of rows is divided in its own way.
#[derive(Debug)]
pub(crate) struct GroupedMatrix<'a, T> {
    pub(crate) data: &'a mut [T],
    /// Values per row.
    pub(crate) row_len: usize,
    /// The division of each group.
    pub(crate) grids: &'a GridList,
    /// Where the rows of the grids are in the matrix, if not in this order.
    pub(crate) places: Option<&'a GroupedRows>,
}

impl Pool {
    /// The grid and column that a thread starts with in a job of these grids; `None` if it gets no
    /// task.
    pub(crate) fn first_block<const N: usize>(
        &self,
        grids: [Option<BlockGrid>; N],
        thread: usize,
    ) -> Option<(usize, usize)> {
        self.first_block_of(&JobGrid::all(grids), thread)
    }

    /// As [`Pool::first_block`], for any number of grids.
    pub(crate) fn first_block_of(
        &self,
        grids: &[JobGrid],
        thread: usize,
    ) -> Option<(usize, usize)> {
        let all = JobGrids(grids);
        let tasks = all.tasks();
        all.first(TaskQueue::edge(tasks, self.threads().min(tasks), thread))
    }

    /// Calls `f(index of the matrix, rows, block, what comes next)` for each block of each matrix,
    /// in parallel. Up to `max_claim` consecutive blocks of the same rows are passed as one block.
    ///
    /// # Panics
    /// When the length of a matrix does not match its grid, a chunk is zero or not larger than its
    /// lead, or `max_claim` is zero.
    pub(crate) fn partitioned_mut<T: Send, const N: usize>(
        &self,
        matrices: &mut [Option<PartitionedMatrix<'_, T>>; N],
        max_claim: usize,
        f: impl Fn(usize, Range<usize>, ColumnBlock<'_, T>, AfterBlock) + Sync,
    ) {
        let (mut bases, mut grids) = ([const { None }; N], [None; N]);
        for ((matrix, base), to) in matrices.iter_mut().zip(&mut bases).zip(&mut grids) {
            let Some(PartitionedMatrix { data, blocks }) = matrix else { continue };
            let BlockGrid { first_row, rows, row_len, .. } = *blocks;
            assert!(first_row == 0 && data.len() == rows * row_len, "not {rows} rows of {row_len}");
            (*base, *to) = (Some(Base(data.as_mut_ptr())), Some(*blocks));
        }
        self.run_blocks(JobGrids(&JobGrid::all(grids)), max_claim, |line| {
            let BlockRun { index, rows, cols, after, .. } = line;
            let (Some(base), Some(blocks)) = (&bases[index], &grids[index]) else { return };
            let block = ColumnBlock {
                // SAFETY: the rows are inside the data, which `matrices` borrows exclusively
                // until all tasks have ended; blocks do not overlap, and each is made once.
                base: unsafe { base.get().add(rows.start * blocks.row_len) },
                places: None,
                rows: rows.len(),
                row_len: blocks.row_len,
                start: cols.start,
                width: cols.len(),
                data: PhantomData,
            };
            f(index, rows, block, after);
        });
    }

    /// As [`Pool::partitioned_mut`], for the groups of rows of one matrix.
    ///
    /// # Panics
    /// When the groups are not ascending and disjoint, or not rows of the matrix, or `max_claim` is
    /// zero.
    pub(crate) fn grouped_mut<T: Send>(
        &self,
        matrix: GroupedMatrix<'_, T>,
        max_claim: usize,
        f: impl Fn(usize, Range<usize>, ColumnBlock<'_, T>, AfterBlock) + Sync,
    ) {
        let GroupedMatrix { data, row_len, grids, places } = matrix;
        let of_places = places.map(GroupedRows::rows);
        let places = places.map(GroupedRows::order);
        let grids = grids.as_slice();
        let mut end = 0;
        for JobGrid { grid, .. } in grids {
            assert!(grid.first_row >= end && grid.row_len == row_len, "{grid:?} after row {end}");
            end = grid.row_range().end;
        }
        assert!(end * row_len <= data.len(), "{end} rows of {row_len}");
        assert!(of_places.is_none_or(|rows| rows * row_len == data.len()), "rows and places");
        let base = Base(data.as_mut_ptr());
        self.run_blocks(JobGrids(grids), max_claim, |line| {
            let BlockRun { index, rows, cols, after, .. } = line;
            let first = if places.is_some() { 0 } else { rows.start };
            let block = ColumnBlock {
                // SAFETY: the rows are inside the data, which is borrowed until all tasks have ended; grids are
                // disjoint, and `GroupedRows` has each row of the matrix at most once, so no two blocks overlap.
                base: unsafe { base.get().add(first * row_len) },
                places: places.map(|places| &places[rows.clone()]),
                rows: rows.len(),
                row_len,
                start: cols.start,
                width: cols.len(),
                data: PhantomData,
            };
            f(index, rows, block, after);
        });
    }

    fn run_blocks(&self, grids: JobGrids<'_>, max_claim: usize, f: impl Fn(BlockRun) + Sync) {
        assert!(max_claim > 0, "claims of nothing");
        self.run_claimed(grids.tasks(), max_claim, &|claim| {
            let mut left = claim.clone();
            while !left.tasks.is_empty() {
                let Some(line) = grids.block_run(&left) else { return };
                left.tasks.start += line.count;
                f(line);
            }
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
