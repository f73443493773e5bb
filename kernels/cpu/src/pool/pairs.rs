//! Divides rows of one matrix, and beside each some rows of another.
#![expect(unsafe_code, reason = "tasks write disjoint parts of two slices")]

use super::blocks::{Base, ColumnBlock};
use super::thread_pool::Pool;
use std::marker::PhantomData;
use std::ops::Range;

/// Two matrices with pairs of rows: row `picks[i]` of one, and the rows `blocks[i]` of the other.
#[derive(Debug)]
pub(crate) struct RowPairs<'a, T> {
    /// The matrix of single rows, each of `single_len` values.
    pub(crate) singles: &'a mut [T],
    pub(crate) single_len: usize,
    /// Different rows of it.
    pub(crate) picks: &'a [u32],
    /// The other matrix, with rows of `row_len` values.
    pub(crate) data: &'a mut [T],
    pub(crate) row_len: usize,
    /// Its rows beside each pick, ascending and disjoint.
    pub(crate) blocks: &'a [Range<usize>],
    /// Parts of as many columns that rows are cut into.
    pub(crate) parts: usize,
}

impl<T> RowPairs<'_, T> {
    /// # Panics
    /// When rows are not whole parts, or a row is picked twice, is in two blocks, or is outside its matrix.
    fn check(&self) {
        let RowPairs { picks, blocks, parts, .. } = *self;
        let whole = [self.single_len, self.row_len].iter().all(|len| len.is_multiple_of(parts));
        assert!(parts > 0 && whole, "rows are not {parts} parts");
        assert_eq!(picks.len(), blocks.len(), "picks and blocks differ in number");
        for (i, pick) in picks.iter().enumerate() {
            let end = (*pick as usize + 1) * self.single_len;
            assert!(end <= self.singles.len(), "there is no row {pick}");
            assert!(!picks[..i].contains(pick), "row {pick} is picked twice");
        }
        let mut end = 0;
        for block in blocks {
            let ordered = end <= block.start && block.start <= block.end;
            let inside = block.end * self.row_len <= self.data.len();
            assert!(ordered && inside, "row block {block:?} after row {end}");
            end = block.end;
        }
    }
}

impl Pool {
    /// Calls `f([i, part], part of a single row, the same part of the rows beside it)` for each part of each pair, in parallel.
    ///
    /// # Panics
    /// When rows are not whole parts, or a row is picked twice, is in two blocks, or is outside its matrix.
    pub(crate) fn pairs_mut<T: Send>(
        &self,
        pairs: RowPairs<'_, T>,
        f: impl Fn([usize; 2], &mut [T], ColumnBlock<'_, T>) + Sync,
    ) {
        pairs.check();
        let RowPairs { singles, single_len, picks, data, row_len, blocks, parts } = pairs;
        let [singles, data] = [singles, data].map(|data| Base(data.as_mut_ptr()));
        let [len, width] = [single_len, row_len].map(|values| values / parts);
        self.run(picks.len() * parts, &|task| {
            let (i, part) = (task / parts, task % parts);
            let at = picks[i] as usize * single_len + part * len;
            // SAFETY: the part is inside its row, which is inside `singles`; no two picks are equal, and each task number is run
            // once, so that this is the only reference to it.
            let single = unsafe { std::slice::from_raw_parts_mut(singles.get().add(at), len) };
            let rows = &blocks[i];
            let block = ColumnBlock {
                // SAFETY: the rows are inside `data`. Blocks are disjoint, and so are the columns of parts.
                base: unsafe { data.get().add(rows.start * row_len) },
                places: None,
                rows: rows.len(),
                row_len,
                start: part * width,
                width,
                data: PhantomData,
            };
            f([i, part], single, block);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs<'a>(
        singles: &'a mut [u32],
        data: &'a mut [u32],
        picks: &'a [u32],
    ) -> RowPairs<'a, u32> {
        let blocks = &[0..2, 3..4];
        RowPairs { singles, single_len: 4, picks, data, row_len: 6, blocks, parts: 2 }
    }

    #[test]
    fn each_part_of_each_pair_is_passed_once() {
        for threads in 1..4 {
            let (mut singles, mut data) = ([0; 12], [0; 30]);
            let pairs = pairs(&mut singles, &mut data, &[2, 0]);
            Pool::new(threads).pairs_mut(pairs, |[i, part], single, mut block| {
                let mark = 1 + 2 * i as u32 + part as u32;
                single.iter_mut().for_each(|x| *x += mark);
                (0..block.rows()).for_each(|row| block.row_mut(row).fill(mark));
            });
            assert_eq!(singles, [3, 3, 4, 4, 0, 0, 0, 0, 1, 1, 2, 2]);
            let row = |a, b| [a, a, a, b, b, b];
            assert_eq!(data, [row(1, 2), row(1, 2), [0; 6], row(3, 4), [0; 6]].concat()[..]);
        }
    }

    #[test]
    #[should_panic(expected = "row 1 is picked twice")]
    fn a_row_is_not_picked_twice() {
        let (mut singles, mut data) = ([0; 12], [0; 30]);
        Pool::new(1).pairs_mut(pairs(&mut singles, &mut data, &[1, 1]), |_, _, _| {});
    }
}
