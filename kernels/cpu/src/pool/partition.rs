//! Divides several matrices into blocks, which are all tasks of one job.
#![expect(unsafe_code, reason = "tasks write disjoint parts of the matrices")]

use super::blocks::{Base, ColumnBlock};
use super::task_queue::{Claim, TaskQueue};
use super::thread_pool::Pool;
use std::marker::PhantomData;
use std::ops::Range;

/// How a row-major matrix is divided into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockGrid {
    /// Rows of the matrix.
    pub(crate) rows: usize,
    /// Values per row; not zero.
    pub(crate) row_len: usize,
    /// Rows of each block; the last may have fewer.
    pub(crate) row_chunk: usize,
    /// Columns of each block; the first has `lead` fewer, the last may have fewer.
    pub(crate) col_chunk: usize,
    /// Columns missing from the first block; less than `col_chunk`.
    pub(crate) lead: usize,
}

/// A matrix that is divided into blocks.
#[derive(Debug)]
pub(crate) struct PartitionedMatrix<'a, T> {
    pub(crate) data: &'a mut [T],
    pub(crate) blocks: BlockGrid,
}

/// The most likely next work of the thread that computes a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AfterBlock {
    /// It continues with the same rows of this matrix up to this column.
    pub(crate) until: usize,
    pub(crate) next: NextBlock,
}

impl AfterBlock {
    /// The same for a matrix with `factor` times as many columns.
    pub(crate) fn times(self, factor: usize) -> AfterBlock {
        let next = match self.next {
            NextBlock::Block { index, col } => NextBlock::Block { index, col: col * factor },
            nothing => nothing,
        };
        AfterBlock { until: self.until * factor, next }
    }
}

/// The rows that a thread computes after the current ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextBlock {
    /// The block of matrix `index` that starts at column `col`.
    Block { index: usize, col: usize },
    /// Nothing in this job; `thread` is its number in the pool.
    EndOfJob { thread: usize },
}

impl BlockGrid {
    fn columns(&self) -> usize {
        (self.row_len + self.lead).div_ceil(self.col_chunk)
    }

    fn tasks(&self) -> usize {
        self.rows.div_ceil(self.row_chunk) * self.columns()
    }

    /// First column of block `block` in a row of blocks.
    fn edge(&self, block: usize) -> usize {
        (block * self.col_chunk).saturating_sub(self.lead).min(self.row_len)
    }
}

/// All matrices of a job.
struct JobMatrices<const N: usize>([Option<BlockGrid>; N]);

/// Consecutive blocks of the same rows, computed as one block.
#[derive(Debug, PartialEq)]
struct BlockRun {
    /// Index of the matrix.
    index: usize,
    rows: Range<usize>,
    cols: Range<usize>,
    /// Number of blocks.
    count: usize,
    after: AfterBlock,
}

impl<const N: usize> JobMatrices<N> {
    fn tasks(&self) -> usize {
        self.0.iter().flatten().map(BlockGrid::tasks).sum()
    }

    /// The matrix of a task, and the task's block number in it.
    fn matrix(&self, mut task: usize) -> Option<(usize, &BlockGrid, usize)> {
        for (index, blocks) in self.0.iter().enumerate() {
            let Some(blocks) = blocks else { continue };
            let tasks = blocks.tasks();
            if task < tasks {
                return Some((index, blocks, task));
            }
            task -= tasks;
        }
        None
    }

    /// The matrix and the first column of a task's block.
    fn first(&self, task: usize) -> Option<(usize, usize)> {
        let (index, blocks, at) = self.matrix(task)?;
        Some((index, blocks.edge(at % blocks.columns())))
    }

    /// The first blocks of a claim that have the same rows.
    fn block_run(&self, claim: &Claim) -> Option<BlockRun> {
        let (index, blocks, at) = self.matrix(claim.tasks.start)?;
        let columns = blocks.columns();
        let (row, col) = (at / columns, at % columns);
        let count = claim.tasks.len().min(columns - col);
        let own = (claim.end - claim.tasks.start).min(columns - col);
        let then = claim.tasks.start + own;
        let next = (then < claim.end).then(|| self.first(then)).flatten();
        Some(BlockRun {
            index,
            rows: row * blocks.row_chunk..blocks.rows.min((row + 1) * blocks.row_chunk),
            cols: blocks.edge(col)..blocks.edge(col + count),
            count,
            after: AfterBlock {
                until: blocks.edge(col + own),
                next: match next {
                    Some((index, col)) => NextBlock::Block { index, col },
                    None => NextBlock::EndOfJob { thread: claim.thread },
                },
            },
        })
    }
}

impl Pool {
    /// The matrix and column that a thread starts with in a job of these matrices; `None` if it
    /// gets no task.
    pub(crate) fn first_block<const N: usize>(
        &self,
        matrices: [Option<BlockGrid>; N],
        thread: usize,
    ) -> Option<(usize, usize)> {
        let all = JobMatrices(matrices);
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
        assert!(max_claim > 0, "claims of nothing");
        let mut bases = [const { None }; N];
        let mut all = JobMatrices([None; N]);
        for ((matrix, base), to) in matrices.iter_mut().zip(&mut bases).zip(&mut all.0) {
            let Some(PartitionedMatrix { data, blocks }) = matrix else { continue };
            let BlockGrid { rows, row_len, row_chunk, col_chunk, lead } = *blocks;
            assert!(row_len > 0 && row_chunk > 0 && lead < col_chunk, "an empty block grid");
            assert_eq!(data.len(), rows * row_len, "not {rows} rows of {row_len}");
            (*base, *to) = (Some(Base(data.as_mut_ptr())), Some(*blocks));
        }
        self.run_claimed(all.tasks(), max_claim, &|claim| {
            let mut left = claim.clone();
            while !left.tasks.is_empty() {
                let Some(line) = all.block_run(&left) else { return };
                left.tasks.start += line.count;
                let BlockRun { index, rows, cols, after, .. } = line;
                let (Some(base), Some(blocks)) = (&bases[index], &all.0[index]) else { return };
                let block = ColumnBlock {
                    // SAFETY: the rows are inside the data, which `matrices` borrows exclusively
                    // until all tasks have ended; blocks do not overlap, and each is made once.
                    base: unsafe { base.get().add(rows.start * blocks.row_len) },
                    rows: rows.len(),
                    row_len: blocks.row_len,
                    start: cols.start,
                    width: cols.len(),
                    data: PhantomData,
                };
                f(index, rows, block, after);
            }
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
