//! Splits a slice or a matrix into disjoint parts, one for each task.
#![expect(unsafe_code, reason = "tasks write disjoint parts of one slice")]

use super::thread_pool::Pool;
use std::marker::PhantomData;
use std::ops::Range;

impl Pool {
    /// Calls `f(index, chunk)` for every chunk of `chunk_len` values of `data` (the last
    /// may be shorter), in parallel.
    pub fn chunks_mut<T: Send>(
        &self,
        data: &mut [T],
        chunk_len: usize,
        f: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let (len, chunk_len) = (data.len(), chunk_len.max(1));
        let base = Base(data.as_mut_ptr());
        self.run(len.div_ceil(chunk_len), &|i| {
            let start = i * chunk_len;
            // SAFETY: chunk `i` is inside `data`, chunks do not overlap, and each task number is
            // run once, so that this is the only reference to it.
            let chunk = unsafe {
                std::slice::from_raw_parts_mut(base.get().add(start), chunk_len.min(len - start))
            };
            f(i, chunk);
        });
    }

    /// Calls `f(index, part)` for the parts `picks[0]`, `picks[1]`, … of `data`, in parallel. Each
    /// part has `part_len` values.
    ///
    /// # Panics
    /// When a part is picked twice or is outside `data`.
    pub fn picks_mut<T: Send>(
        &self,
        data: &mut [T],
        part_len: usize,
        picks: &[u32],
        f: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let parts = data.len().checked_div(part_len).unwrap_or(0);
        for (i, pick) in picks.iter().enumerate() {
            assert!((*pick as usize) < parts, "part {pick} of {parts}");
            assert!(!picks[..i].contains(pick), "part {pick} is picked twice");
        }
        let base = Base(data.as_mut_ptr());
        self.run(picks.len(), &|i| {
            // SAFETY: the part is inside `data`, no two picks are equal, and each task number is
            // run once, so that this is the only reference to it.
            let part = unsafe {
                std::slice::from_raw_parts_mut(
                    base.get().add(picks[i] as usize * part_len),
                    part_len,
                )
            };
            f(i, part);
        });
    }

    /// Splits the row-major matrix `data` (rows of `row_len`) into blocks of `col_chunk` columns
    /// and calls `f(first column, block)` for each, in parallel. Values after the last whole row
    /// are not touched.
    pub fn columns_mut<T: Send>(
        &self,
        data: &mut [T],
        row_len: usize,
        col_chunk: usize,
        f: impl Fn(usize, ColumnBlock<'_, T>) + Sync,
    ) {
        let rows = data.len().checked_div(row_len).unwrap_or(0);
        let all = 0..rows;
        let row_blocks = std::slice::from_ref(&all);
        let cut = Grid { row_len, row_blocks, col_chunk };
        self.grid_mut(data, &cut, |_, col, block| f(col, block));
    }

    /// As [`Pool::columns_mut`], for each row block of `grid` separately: calls `f(index of the row
    /// block, first column, block)`. Each thread starts with the last of its row blocks.
    ///
    /// # Panics
    /// When the row blocks are not ascending and disjoint, or not rows of `data`.
    pub fn grid_mut<T: Send>(
        &self,
        data: &mut [T],
        grid: &Grid<'_>,
        f: impl Fn(usize, usize, ColumnBlock<'_, T>) + Sync,
    ) {
        let Grid { row_len, row_blocks, col_chunk } = *grid;
        let Some(rows) = data.len().checked_div(row_len) else {
            return;
        };
        let mut end = 0;
        for block in row_blocks {
            let ordered = end <= block.start && block.start <= block.end && block.end <= rows;
            assert!(ordered, "row block {block:?} after row {end} of {rows}");
            end = block.end;
        }
        let col_chunk = col_chunk.clamp(1, row_len);
        let col_blocks = row_len.div_ceil(col_chunk);
        let base = Base(data.as_mut_ptr());
        self.run(row_blocks.len() * col_blocks, &|i| {
            let index = row_blocks.len() - 1 - i / col_blocks;
            let (rows, start) = (&row_blocks[index], i % col_blocks * col_chunk);
            let block = ColumnBlock {
                // SAFETY: `rows` is inside `data`, as checked above.
                base: unsafe { base.get().add(rows.start * row_len) },
                places: None,
                rows: rows.len(),
                row_len,
                start,
                width: col_chunk.min(row_len - start),
                data: PhantomData,
            };
            f(index, start, block);
        });
    }
}

/// A pointer that tasks share; they use disjoint parts of its target.
pub(super) struct Base<T>(pub(super) *mut T);

impl<T> Base<T> {
    pub(super) fn get(&self) -> *mut T {
        self.0
    }
}

// SAFETY: the tasks make `&mut` to disjoint parts only, and `T: Send` lets those cross
// threads.
unsafe impl<T: Send> Sync for Base<T> {}

/// How a row-major matrix is divided into blocks.
#[derive(Clone, Copy, Debug)]
pub struct Grid<'a> {
    /// Values per row.
    pub row_len: usize,
    /// Rows of each block, ascending and disjoint.
    pub row_blocks: &'a [Range<usize>],
    /// Columns of each block; the last may have fewer.
    pub col_chunk: usize,
}

/// A block of rows × columns of a row-major matrix. Blocks of a job are disjoint.
#[derive(Debug)]
pub struct ColumnBlock<'a, T> {
    /// The first row, or the matrix if it has `places`.
    pub(super) base: *mut T,
    /// Where its rows are in the matrix, if not one below the other.
    pub(super) places: Option<&'a [u32]>,
    pub(super) rows: usize,
    pub(super) row_len: usize,
    pub(super) start: usize,
    pub(super) width: usize,
    pub(super) data: PhantomData<&'a mut [T]>,
}

impl<T> ColumnBlock<'_, T> {
    /// Rows in this block.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns in this block.
    pub fn width(&self) -> usize {
        self.width
    }

    /// First column of this block.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// One past its last column.
    pub(crate) fn end(&self) -> usize {
        self.start + self.width
    }

    /// This block's part of row `row`.
    ///
    /// # Panics
    /// When `row` is not below [`ColumnBlock::rows`].
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let at = self.places.map_or(row, |places| places[row] as usize);
        // SAFETY: `row` is in range, so the slice is inside the matrix. This block is the only one
        // with these rows and columns, and `&mut self` lends one row at a time.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.base.add(at * self.row_len + self.start),
                self.width,
            )
        }
    }
}
