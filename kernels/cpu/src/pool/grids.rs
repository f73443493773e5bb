//! Division of matrices into blocks, which are the tasks of a job.

use super::task_queue::Claim;
use std::ops::Range;

/// How some rows of a row-major matrix are divided into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockGrid {
    /// The first of the rows.
    pub(crate) first_row: usize,
    /// Number of rows.
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

/// The most likely next work of the thread that computes a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AfterBlock {
    /// It continues with the same rows of this grid up to this column.
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
    /// The block of grid `index` that starts at column `col`.
    Block { index: usize, col: usize },
    /// Nothing in this job; `thread` is its number in the pool.
    EndOfJob { thread: usize },
}

impl BlockGrid {
    /// No blocks.
    const NONE: BlockGrid =
        BlockGrid { first_row: 0, rows: 0, row_len: 1, row_chunk: 1, col_chunk: 1, lead: 0 };

    /// The same for a matrix of which each column stands for `factor` columns; there is no lead.
    pub(crate) fn divided(self, factor: usize) -> BlockGrid {
        let (row_len, col_chunk) = (self.row_len / factor, self.col_chunk / factor);
        BlockGrid { row_len, col_chunk, lead: 0, ..self }
    }

    /// All rows.
    pub(super) fn row_range(&self) -> Range<usize> {
        self.first_row..self.first_row + self.rows
    }

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

/// A grid of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobGrid {
    pub(super) grid: BlockGrid,
    /// Tasks of this grid and of those before it.
    end: usize,
}

/// Grids of a job, whose number is known when it is made; reuses its memory.
#[derive(Debug, Default)]
pub(crate) struct GridList(Vec<JobGrid>);

impl GridList {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a grid.
    ///
    /// # Panics
    /// When a chunk is zero or not larger than its lead.
    pub(crate) fn push(&mut self, grid: BlockGrid) {
        let before = self.0.last().map_or(0, |last| last.end);
        self.0.push(JobGrid::after(before, grid));
    }

    pub(crate) fn as_slice(&self) -> &[JobGrid] {
        &self.0
    }
}

impl JobGrid {
    fn after(before: usize, grid: BlockGrid) -> JobGrid {
        let BlockGrid { row_len, row_chunk, col_chunk, lead, .. } = grid;
        assert!(row_len > 0 && row_chunk > 0 && lead < col_chunk, "an empty block grid");
        JobGrid { grid, end: before + grid.tasks() }
    }

    /// Those of a job of a few matrices.
    pub(super) fn all<const N: usize>(grids: [Option<BlockGrid>; N]) -> [JobGrid; N] {
        let mut before = 0;
        grids.map(|grid| {
            let grid = JobGrid::after(before, grid.unwrap_or(BlockGrid::NONE));
            before = grid.end;
            grid
        })
    }
}

/// All grids of a job.
#[derive(Clone, Copy)]
pub(super) struct JobGrids<'a>(pub(super) &'a [JobGrid]);

/// Consecutive blocks of the same rows, computed as one block.
#[derive(Debug, PartialEq)]
pub(super) struct BlockRun {
    /// Index of the grid.
    pub(super) index: usize,
    /// Rows of the matrix.
    pub(super) rows: Range<usize>,
    pub(super) cols: Range<usize>,
    /// Number of blocks.
    pub(super) count: usize,
    pub(super) after: AfterBlock,
}

impl JobGrids<'_> {
    pub(super) fn tasks(&self) -> usize {
        self.0.last().map_or(0, |last| last.end)
    }

    /// The grid of a task, and the task's block number in it.
    fn grid(&self, task: usize) -> Option<(usize, &BlockGrid, usize)> {
        let index = self.0.partition_point(|grid| grid.end <= task);
        let before = index.checked_sub(1).map_or(0, |before| self.0[before].end);
        Some((index, &self.0.get(index)?.grid, task - before))
    }

    /// The grid and the first column of a task's block.
    pub(super) fn first(&self, task: usize) -> Option<(usize, usize)> {
        let (index, blocks, at) = self.grid(task)?;
        Some((index, blocks.edge(at % blocks.columns())))
    }

    /// The first blocks of a claim that have the same rows.
    pub(super) fn block_run(&self, claim: &Claim) -> Option<BlockRun> {
        let (index, blocks, at) = self.grid(claim.tasks.start)?;
        let columns = blocks.columns();
        let (row, col) = (at / columns, at % columns);
        let count = claim.tasks.len().min(columns - col);
        let own = (claim.end - claim.tasks.start).min(columns - col);
        let then = claim.tasks.start + own;
        let next = (then < claim.end).then(|| self.first(then)).flatten();
        let of_grid = row * blocks.row_chunk..blocks.rows.min((row + 1) * blocks.row_chunk);
        Some(BlockRun {
            index,
            rows: blocks.first_row + of_grid.start..blocks.first_row + of_grid.end,
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
