//! Several matrices cut into blocks, all of them tasks of one job.
#![expect(unsafe_code, reason = "tasks write disjoint parts of the matrices")]

use super::Pool;
use super::blocks::{Base, ColumnBlock};
use super::task_queue::{Claim, TaskQueue};
use std::marker::PhantomData;
use std::ops::Range;

/// How a row-major matrix is cut into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockGrid {
    /// Of the matrix.
    pub(crate) rows: usize,
    /// Values per row; not zero.
    pub(crate) row_len: usize,
    /// Rows of each block; the last may have fewer.
    pub(crate) row_chunk: usize,
    /// Columns of each block; the first has `lead` fewer, the last may have fewer.
    pub(crate) col_chunk: usize,
    /// Less than `col_chunk`.
    pub(crate) lead: usize,
}

/// A matrix that is cut into blocks.
#[derive(Debug)]
pub(crate) struct PartitionedMatrix<'a, T> {
    pub(crate) data: &'a mut [T],
    pub(crate) blocks: BlockGrid,
}

/// What the thread that computes a block will most likely do after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AfterBlock {
    /// It goes on with the same rows of this matrix up to this column.
    pub(crate) until: usize,
    pub(crate) next: NextBlock,
}

impl AfterBlock {
    /// With `factor` columns for each.
    pub(crate) fn times(self, factor: usize) -> AfterBlock {
        let next = match self.next {
            NextBlock::Block { index, col } => NextBlock::Block { index, col: col * factor },
            nothing => nothing,
        };
        AfterBlock { until: self.until * factor, next }
    }
}

/// What comes then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextBlock {
    /// The block of that matrix that begins with that column.
    Block { index: usize, col: usize },
    /// Nothing of this job: it is the pool's thread of that number.
    EndOfJob { thread: usize },
}

impl BlockGrid {
    fn columns(&self) -> usize {
        (self.row_len + self.lead).div_ceil(self.col_chunk)
    }

    fn tasks(&self) -> usize {
        self.rows.div_ceil(self.row_chunk) * self.columns()
    }

    /// The column with which the blocks of some rows have their block number `block`.
    fn edge(&self, block: usize) -> usize {
        (block * self.col_chunk).saturating_sub(self.lead).min(self.row_len)
    }
}

/// All that a job cuts.
struct JobMatrices<const N: usize>([Option<BlockGrid>; N]);

/// Neighbouring blocks of the same rows: a block, too.
#[derive(Debug, PartialEq)]
struct BlockRun {
    /// Of the matrix.
    index: usize,
    rows: Range<usize>,
    cols: Range<usize>,
    /// BlockGrid.
    count: usize,
    after: AfterBlock,
}

impl<const N: usize> JobMatrices<N> {
    fn tasks(&self) -> usize {
        self.0.iter().flatten().map(BlockGrid::tasks).sum()
    }

    /// The matrix that a task is a block of, and its number among the matrix's.
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

    /// The blocks that a claim begins with, as far as they are of the same rows.
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
    /// The matrix and the column that a thread begins with in a job of these matrices; none where it
    /// has no task of its own.
    pub(crate) fn first_block<const N: usize>(
        &self,
        matrices: [Option<BlockGrid>; N],
        thread: usize,
    ) -> Option<(usize, usize)> {
        let all = JobMatrices(matrices);
        let tasks = all.tasks();
        all.first(TaskQueue::edge(tasks, self.threads().min(tasks), thread))
    }

    /// Calls `f(index of the matrix, rows, block, what comes after it)` for each block of each matrix,
    /// or for up to `most` neighbouring ones of the same rows as one block, in parallel.
    ///
    /// # Panics
    /// When a matrix is not as long as its blocks say, a chunk is zero or smaller than its lead, or
    /// `most` is zero.
    pub(crate) fn partitioned_mut<T: Send, const N: usize>(
        &self,
        cuts: &mut [Option<PartitionedMatrix<'_, T>>; N],
        most: usize,
        f: impl Fn(usize, Range<usize>, ColumnBlock<'_, T>, AfterBlock) + Sync,
    ) {
        assert!(most > 0, "claims of nothing");
        let mut bases = [const { None }; N];
        let mut all = JobMatrices([None; N]);
        for ((cut, base), to) in cuts.iter_mut().zip(&mut bases).zip(&mut all.0) {
            let Some(PartitionedMatrix { data, blocks }) = cut else { continue };
            let BlockGrid { rows, row_len, row_chunk, col_chunk, lead } = *blocks;
            assert!(row_len > 0 && row_chunk > 0 && lead < col_chunk, "an empty cut");
            assert_eq!(data.len(), rows * row_len, "not {rows} rows of {row_len}");
            (*base, *to) = (Some(Base(data.as_mut_ptr())), Some(*blocks));
        }
        self.run_claimed(all.tasks(), most, &|claim| {
            let mut left = claim.clone();
            while !left.tasks.is_empty() {
                let Some(line) = all.block_run(&left) else { return };
                left.tasks.start += line.count;
                let BlockRun { index, rows, cols, after, .. } = line;
                let (Some(base), Some(blocks)) = (&bases[index], &all.0[index]) else { return };
                let block = ColumnBlock {
                    // SAFETY: the rows lie inside the data, which `cuts` borrows exclusively until
                    // all tasks have ended; blocks do not overlap and each is made once.
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
mod tests {
    use super::*;

    fn of(rows: usize, row_len: usize, col_chunk: usize, lead: usize) -> BlockGrid {
        BlockGrid { rows, row_len, row_chunk: 2, col_chunk, lead }
    }

    /// What is said to come after a thread's block is its next block, and what comes first is what
    /// it begins with; all blocks together are all values.
    #[test]
    fn a_thread_is_told_to_go_on_with_what_is_not_its_own() {
        let jobs = [
            [Some(of(1, 160, 16, 0)), None, None],
            [Some(of(1, 160, 48, 7)), None, Some(of(1, 5, 16, 3))],
            [Some(of(1, 3, 16, 0)), Some(of(1, 64, 32, 0)), Some(of(1, 64, 16, 0))],
            [Some(of(5, 64, 16, 0)), Some(of(5, 40, 16, 2)), None],
            [Some(of(1, 3, 16, 0)), None, None],
            [None, None, None],
        ];
        let cases = (1..=4).flat_map(|n| [1, 3, 100].map(|most| (n, most)));
        for ((threads, most), matrices) in cases.flat_map(|case| jobs.map(|job| (case, job))) {
            let (pool, all) = (Pool::new(threads), JobMatrices(matrices));
            let tasks = all.tasks();
            let used = threads.min(tasks);
            let mut values = 0;
            for thread in 0..used {
                let edge = |thread| TaskQueue::edge(tasks, used, thread);
                let end = edge(thread + 1);
                let mut at = edge(thread);
                let mut announced = pool.first_block(matrices, thread);
                while at < end {
                    let claim = Claim { thread, tasks: at..end.min(at + most), end };
                    let line = all.block_run(&claim).unwrap();
                    assert_eq!(announced, Some((line.index, line.cols.start)));
                    values += line.rows.len() * line.cols.len();
                    at += line.count;
                    announced = match line.after {
                        AfterBlock { until, .. } if until > line.cols.end => {
                            Some((line.index, line.cols.end))
                        }
                        AfterBlock { next: NextBlock::Block { index, col }, .. } => {
                            Some((index, col))
                        }
                        AfterBlock { next: NextBlock::EndOfJob { thread: of }, .. } => {
                            assert_eq!(of, thread);
                            None
                        }
                    };
                }
                assert_eq!(announced, None);
            }
            let want: usize = matrices.iter().flatten().map(|b| b.rows * b.row_len).sum();
            assert_eq!(values, want, "{threads} threads, {most} at once, {matrices:?}");
        }
    }

    #[test]
    fn a_value_is_in_two_blocks_or_in_none() {
        for (threads, most) in [(1, 1), (1, 9), (2, 1), (3, 2), (3, 9)] {
            let all = [Some(of(5, 64, 16, 0)), None, Some(of(5, 41, 16, 2))];
            let mut data = all.map(|b| vec![0u8; b.map_or(0, |b| b.rows * b.row_len)]);
            let mut lines = data.iter_mut();
            let mut cuts = all.map(|blocks| {
                let data = &mut lines.next()?[..];
                Some(PartitionedMatrix { data, blocks: blocks? })
            });
            Pool::new(threads).partitioned_mut(&mut cuts, most, |_, rows, mut block, _| {
                assert_eq!(rows.len(), block.rows());
                (0..rows.len()).for_each(|row| block.row_mut(row).iter_mut().for_each(|x| *x += 1));
            });
            assert!(data.iter().flatten().all(|times| *times == 1), "{threads}, {most}: {data:?}");
        }
    }
}
