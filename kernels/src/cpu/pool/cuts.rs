//! Several matrices cut into blocks, all of them tasks of one job.
#![expect(unsafe_code, reason = "tasks write disjoint parts of the matrices")]

use super::Pool;
use super::blocks::{Base, ColumnBlock};
use std::marker::PhantomData;
use std::ops::Range;

/// How a row-major matrix is cut into blocks.
#[derive(Debug)]
pub(crate) struct Cut<'a, T> {
    pub(crate) data: &'a mut [T],
    /// Values per row; not zero.
    pub(crate) row_len: usize,
    /// Rows of each block; the last may have fewer.
    pub(crate) row_chunk: usize,
    /// Columns of each block; the first has `lead` fewer, the last may have fewer.
    pub(crate) col_chunk: usize,
    /// Less than `col_chunk`.
    pub(crate) lead: usize,
}

/// A [`Cut`] whose data the tasks share.
struct Shared<T> {
    base: Base<T>,
    rows: usize,
    row_len: usize,
    row_chunk: usize,
    col_chunk: usize,
    lead: usize,
}

impl<T> Shared<T> {
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

impl Pool {
    /// Calls `f(index of the matrix, rows, block)` for each block of each matrix, in parallel.
    ///
    /// # Panics
    /// When a matrix is not whole rows, or a chunk is zero or smaller than its lead.
    pub(crate) fn cuts_mut<T: Send, const N: usize>(
        &self,
        cuts: &mut [Option<Cut<'_, T>>; N],
        f: impl Fn(usize, Range<usize>, ColumnBlock<'_, T>) + Sync,
    ) {
        let shared: [Option<Shared<T>>; N] = std::array::from_fn(|i| {
            let cut = cuts[i].as_mut()?;
            let Cut { row_len, row_chunk, col_chunk, lead, .. } = *cut;
            assert!(row_len > 0 && row_chunk > 0 && lead < col_chunk, "an empty cut");
            assert!(cut.data.len().is_multiple_of(row_len), "not whole rows of {row_len}");
            let (rows, base) = (cut.data.len() / row_len, Base(cut.data.as_mut_ptr()));
            Some(Shared { base, rows, row_len, row_chunk, col_chunk, lead })
        });
        let tasks = shared.iter().flatten().map(Shared::tasks).sum();
        self.run(tasks, &|mut task| {
            for (index, shared) in shared.iter().enumerate() {
                let Some(shared) = shared else { continue };
                if task >= shared.tasks() {
                    task -= shared.tasks();
                    continue;
                }
                let (rows, cols) = shared.block(task);
                let block = ColumnBlock {
                    // SAFETY: the rows lie inside the data, which `cuts` borrows exclusively
                    // until all tasks have ended; blocks do not overlap and each is made once.
                    base: unsafe { shared.base.get().add(rows.start * shared.row_len) },
                    rows: rows.len(),
                    row_len: shared.row_len,
                    start: cols.start,
                    width: cols.len(),
                    data: PhantomData,
                };
                return f(index, rows, block);
            }
        });
    }
}
