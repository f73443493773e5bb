//! Several matrices cut into blocks, all of them tasks of one job.
#![expect(unsafe_code, reason = "tasks write disjoint parts of the matrices")]

use super::Pool;
use super::blocks::{Base, ColumnBlock};
use super::claims::Claims;
use std::marker::PhantomData;
use std::ops::Range;

/// How a row-major matrix is cut into blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
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
pub(crate) struct Cut<'a, T> {
    pub(crate) data: &'a mut [T],
    pub(crate) blocks: Blocks,
}

/// What the thread in whose run a task is does after it; a thread that has taken the task from it is
/// told the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The block of that matrix that begins with that column.
    Block { index: usize, col: usize },
    /// Nothing of this job: it is the pool's thread of that number.
    Nothing { thread: usize },
}

impl Blocks {
    fn columns(&self) -> usize {
        (self.row_len + self.lead).div_ceil(self.col_chunk)
    }

    fn tasks(&self) -> usize {
        self.rows.div_ceil(self.row_chunk) * self.columns()
    }

    /// Rows and columns of block `task`: the columns of some rows, then those of the next.
    fn block(&self, task: usize) -> (Range<usize>, Range<usize>) {
        let (row, col) = (task / self.columns(), task % self.columns());
        let rows = row * self.row_chunk..self.rows.min((row + 1) * self.row_chunk);
        let edge = |col: usize| (col * self.col_chunk).saturating_sub(self.lead).min(self.row_len);
        (rows, edge(col)..edge(col + 1))
    }
}

/// All that a job cuts.
struct Matrices<const N: usize>([Option<Blocks>; N]);

impl<const N: usize> Matrices<N> {
    fn tasks(&self) -> usize {
        self.0.iter().flatten().map(Blocks::tasks).sum()
    }

    /// The matrix that a task is a block of, and the block's rows and columns.
    fn block(&self, mut task: usize) -> Option<(usize, Range<usize>, Range<usize>)> {
        for (index, blocks) in self.0.iter().enumerate() {
            let Some(blocks) = blocks else { continue };
            if task < blocks.tasks() {
                let (rows, cols) = blocks.block(task);
                return Some((index, rows, cols));
            }
            task -= blocks.tasks();
        }
        None
    }
}

impl Pool {
    /// The matrix and the column that a thread begins with in a job of these matrices; none where it
    /// has no task of its own.
    pub(crate) fn first_block<const N: usize>(
        &self,
        matrices: [Option<Blocks>; N],
        thread: usize,
    ) -> Option<(usize, usize)> {
        let all = Matrices(matrices);
        let tasks = all.tasks();
        let threads = self.threads().min(tasks);
        let (index, _, cols) = all.block(Claims::edge(tasks, threads, thread))?;
        Some((index, cols.start))
    }

    /// Calls `f(index of the matrix, rows, block, what comes after it)` for each block of each matrix,
    /// in parallel.
    ///
    /// # Panics
    /// When a matrix is not as long as its blocks say, or a chunk is zero or smaller than its lead.
    pub(crate) fn cuts_mut<T: Send, const N: usize>(
        &self,
        cuts: &mut [Option<Cut<'_, T>>; N],
        f: impl Fn(usize, Range<usize>, ColumnBlock<'_, T>, After) + Sync,
    ) {
        let mut bases = [const { None }; N];
        let mut all = Matrices([None; N]);
        for ((cut, base), to) in cuts.iter_mut().zip(&mut bases).zip(&mut all.0) {
            let Some(Cut { data, blocks }) = cut else { continue };
            let Blocks { rows, row_len, row_chunk, col_chunk, lead } = *blocks;
            assert!(row_len > 0 && row_chunk > 0 && lead < col_chunk, "an empty cut");
            assert_eq!(data.len(), rows * row_len, "not {rows} rows of {row_len}");
            (*base, *to) = (Some(Base(data.as_mut_ptr())), Some(*blocks));
        }
        let tasks = all.tasks();
        let threads = self.threads().min(tasks);
        self.run(tasks, &|task| {
            let Some((index, rows, cols)) = all.block(task) else { return };
            let (Some(base), Some(blocks)) = (&bases[index], &all.0[index]) else { return };
            let block = ColumnBlock {
                // SAFETY: the rows lie inside the data, which `cuts` borrows exclusively until all
                // tasks have ended; blocks do not overlap and each is made once.
                base: unsafe { base.get().add(rows.start * blocks.row_len) },
                rows: rows.len(),
                row_len: blocks.row_len,
                start: cols.start,
                width: cols.len(),
                data: PhantomData,
            };
            let thread = Claims::thread_of(tasks, threads, task);
            let is_last = Claims::edge(tasks, threads, thread + 1) == task + 1;
            let after = match all.block(task + 1) {
                Some((index, _, cols)) if !is_last => After::Block { index, col: cols.start },
                _ => After::Nothing { thread },
            };
            f(index, rows, block, after);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Every chain of what comes after what is a thread's run, begins with what is said to be its
    /// first block, and all of them are the whole job.
    #[test]
    fn a_thread_is_told_to_go_on_with_what_is_not_its_own() {
        let of = |rows, row_len, col_chunk, lead| Blocks {
            rows,
            row_len,
            row_chunk: 2,
            col_chunk,
            lead,
        };
        let jobs = [
            [Some(of(1, 160, 16, 0)), None, None],
            [Some(of(1, 160, 48, 7)), None, Some(of(1, 5, 16, 3))],
            [Some(of(1, 3, 16, 0)), Some(of(1, 64, 32, 0)), Some(of(1, 64, 16, 0))],
            [Some(of(1, 3, 16, 0)), None, None],
            [None, None, None],
        ];
        for (threads, matrices) in (1..=4).flat_map(|n| jobs.map(|job| (n, job))) {
            let pool = Pool::new(threads);
            let mut data = matrices.map(|b| vec![0u8; b.map_or(0, |b| b.rows * b.row_len)]);
            let mut lines = data.iter_mut();
            let mut cuts = matrices.map(|blocks| {
                let data = &mut lines.next()?[..];
                Some(Cut { data, blocks: blocks? })
            });
            let seen = Mutex::new(Vec::new());
            pool.cuts_mut(&mut cuts, |index, _, block, after| {
                seen.lock().unwrap().push(((index, block.start()), after));
            });
            let seen = seen.into_inner().unwrap();
            let mut visited = 0;
            for thread in 0..threads {
                let mut at = pool.first_block(matrices, thread);
                while let Some(block) = at {
                    visited += 1;
                    let after = seen.iter().find(|(of, _)| *of == block).unwrap().1;
                    at = match after {
                        After::Block { index, col } => Some((index, col)),
                        After::Nothing { thread: of } => {
                            assert_eq!(of, thread);
                            None
                        }
                    };
                }
            }
            assert_eq!(visited, seen.len(), "{threads} threads, {matrices:?}");
        }
    }
}
