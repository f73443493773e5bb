//! The states of one layer.

use super::KvStore;
use super::paged::Paged;
use crate::kv::PageId;
use crate::sync::{MutexGuard, lock};
use std::ops::Range;

/// The states of one layer in all pages, locked.
#[derive(Debug)]
pub struct StateLayer<'a> {
    values: usize,
    page_rows: usize,
    data: MutexGuard<'a, Paged<f32>>,
}

/// New rows of a sequence, of which a layer's state has the last ones.
#[derive(Clone, Copy, Debug)]
pub struct StateRows<'a> {
    /// Pages of the sequence.
    pub pages: &'a [PageId],
    /// Position of the first row.
    pub start: usize,
    /// `[rows][width]`.
    pub x: &'a [f32],
    /// Values of a row.
    pub width: usize,
}

impl KvStore {
    /// Locks a layer's states; waits while another thread holds the lock.
    ///
    /// # Panics
    /// If there is no such state.
    pub fn state(&self, state: usize) -> StateLayer<'_> {
        StateLayer {
            values: self.layout.states[state].values,
            page_rows: self.layout.page_rows,
            data: lock(&self.states[state]),
        }
    }
}

impl StateLayer<'_> {
    /// The state of a sequence with these pages, after as many rows as there are before position `row`.
    ///
    /// # Panics
    /// At position 0, or if `pages` lacks the row before.
    pub fn before(&self, pages: &[PageId], row: usize) -> &[f32] {
        &self.data[self.place(pages[(row - 1) / self.page_rows])]
    }

    /// Makes a state of the last rows, oldest first: in each page that the new rows are in, the latest up to its end. Where a sequence
    /// has fewer rows, those before it are 0.
    ///
    /// # Panics
    /// If `pages` lacks a row, or the state is not of whole rows.
    pub fn keep_rows(&mut self, rows: &StateRows<'_>) {
        let StateRows { pages, start, x, width } = *rows;
        assert!(self.values.is_multiple_of(width), "{} values in rows of {width}", self.values);
        let (kept, end) = (self.values / width, start + x.len() / width);
        let new_pages = start / self.page_rows..end.div_ceil(self.page_rows);
        // From the last page on: the first may be the one with the state before the rows.
        for page in new_pages.rev() {
            let to = self.place(pages[page]);
            let new = end.min((page + 1) * self.page_rows) - start;
            let old = kept.saturating_sub(new);
            match start {
                0 => self.data[to.start..][..old * width].fill(0.0),
                _ => {
                    let from = self.place(pages[(start - 1) / self.page_rows]);
                    self.data.copy_within(from.end - old * width..from.end, to.start);
                }
            }
            let last = &x[(new + old - kept) * width..new * width];
            self.data[to.start + old * width..to.end].copy_from_slice(last);
        }
    }

    /// One past the last position whose row has its state where that of a row at `position` is.
    pub fn end_of(&self, position: usize) -> usize {
        (position / self.page_rows + 1) * self.page_rows
    }

    /// Makes the state before the row at `position` that of the page which has that row: the one of the page before, or zeros at the
    /// start. Returns its number among [`all_mut`](StateLayer::all_mut). The caller makes it the state after the latest new row in
    /// this page.
    ///
    /// # Panics
    /// If `pages` lacks the row.
    pub fn enter(&mut self, pages: &[PageId], position: usize) -> u32 {
        let page = pages[position / self.page_rows];
        let to = self.place(page);
        match position {
            0 => self.data[to].fill(0.0),
            _ if position.is_multiple_of(self.page_rows) => {
                let from = self.place(pages[position / self.page_rows - 1]);
                self.data.copy_within(from, to.start);
            }
            _ => {}
        }
        page
    }

    /// All states, one after another.
    pub fn all_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// Values of a state.
    pub fn values(&self) -> usize {
        self.values
    }

    fn place(&self, page: PageId) -> Range<usize> {
        page as usize * self.values..(page as usize + 1) * self.values
    }
}
