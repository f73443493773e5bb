//! Divides rows of one matrix, and beside them the rows of another that they change one after another.
#![expect(unsafe_code, reason = "tasks write disjoint parts of two slices")]

use super::blocks::{Base, ColumnBlock};
use super::thread_pool::Pool;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::Range;

/// Rows of a matrix in groups, and the places, rows of another matrix, that each group goes through.
#[derive(Debug)]
pub(crate) struct PlacedRows<'a, T> {
    /// The matrix of places, each of `place_len` values.
    pub(crate) places: &'a mut [T],
    pub(crate) place_len: usize,
    /// Numbers of places that groups write to; no two groups write to the same.
    pub(crate) picks: &'a [u32],
    /// The other matrix, with rows of `row_len` values.
    pub(crate) data: &'a mut [T],
    pub(crate) row_len: usize,
    pub(crate) groups: &'a [PlacedGroup],
    /// Parts of as many columns that rows and places are cut into.
    pub(crate) parts: usize,
}

/// Neighbouring rows, and their places.
#[derive(Clone, Debug)]
pub(crate) struct PlacedGroup {
    /// The place before the first row, if there is one. No other group writes to it.
    pub(crate) before: Option<u32>,
    /// Which of the picks it writes to, in this order.
    pub(crate) picks: Range<usize>,
    /// Its rows, behind those of the group before.
    pub(crate) rows: Range<usize>,
}

/// The same part of each place of a group.
#[derive(Debug)]
pub(crate) struct PlaceParts<'a, T> {
    /// The part of place 0.
    base: *mut T,
    place_len: usize,
    len: usize,
    before: Option<u32>,
    picks: &'a [u32],
    data: PhantomData<&'a mut [T]>,
}

/// What a place was before its group writes to it.
#[derive(Debug)]
pub(crate) enum Before<'a, T> {
    /// There is none.
    Nothing,
    /// What is in the place itself.
    Here,
    /// What is in another one.
    There(&'a [T]),
}

impl<T> PlaceParts<'_, T> {
    /// Values of a part.
    pub(crate) fn values(&self) -> usize {
        self.len
    }

    /// The group's place number `i` to write to, and the place before it.
    ///
    /// # Panics
    /// When there is no such place.
    pub(crate) fn step(&mut self, i: usize) -> (Before<'_, T>, &mut [T]) {
        let to = self.picks[i];
        let from = i.checked_sub(1).map_or(self.before, |last| Some(self.picks[last]));
        let start = |place: u32| place as usize * self.place_len;
        // SAFETY: the part is inside its place, which exists. No other task writes to this part of the group's places, and no other one
        // reads it but of a place that none writes to. Two places that are not equal do not overlap, and `self` is borrowed.
        unsafe {
            let before = match from {
                None => Before::Nothing,
                Some(from) if from == to => Before::Here,
                Some(from) => {
                    Before::There(std::slice::from_raw_parts(self.base.add(start(from)), self.len))
                }
            };
            (before, std::slice::from_raw_parts_mut(self.base.add(start(to)), self.len))
        }
    }
}

thread_local! {
    static WRITERS: RefCell<Vec<usize>> = RefCell::default();
}

impl<T> PlacedRows<'_, T> {
    /// # Panics
    /// As [`Pool::places_mut`].
    fn check(&self) {
        let PlacedRows { picks, groups, parts, .. } = *self;
        let whole = [self.place_len, self.row_len].iter().all(|len| len.is_multiple_of(parts));
        assert!(parts > 0 && whole, "rows are not {parts} parts");
        let (mut row, mut pick) = (0, 0);
        for PlacedGroup { rows, picks, .. } in groups {
            let ordered = row <= rows.start && rows.start <= rows.end;
            let inside = rows.end * self.row_len <= self.data.len();
            assert!(ordered && inside, "rows {rows:?} after row {row}");
            let next = pick == picks.start && pick < picks.end;
            assert!(next && picks.end <= self.picks.len(), "picks {picks:?} after pick {pick}");
            (row, pick) = (rows.end, picks.end);
        }
        WRITERS.with_borrow_mut(|writers| {
            writers.clear();
            writers.resize(self.places.len().checked_div(self.place_len).unwrap_or(0), 0);
            for (at, group) in groups.iter().enumerate() {
                for place in &picks[group.picks.clone()] {
                    let before =
                        writers.get_mut(*place as usize).map(|w| std::mem::replace(w, at + 1));
                    let free = before.is_some_and(|before| before == 0 || before == at + 1);
                    assert!(free, "place {place} does not exist, or another group writes to it");
                }
            }
            for (at, group) in groups.iter().enumerate() {
                let Some(place) = group.before else { continue };
                let writer = writers.get(place as usize).copied();
                let free = writer.is_some_and(|writer| writer == 0 || writer == at + 1);
                assert!(free, "place {place} does not exist, or another group writes to it");
            }
        });
    }
}

impl Pool {
    /// Calls `f([group, part], that part of the group's places, of its rows)` for each part of each group, in parallel.
    ///
    /// # Panics
    /// When rows or places are not whole parts; groups are not in the order of their rows and picks, have no pick, or are outside the matrices;
    /// or a group reads or writes a place that another one writes to.
    pub(crate) fn places_mut<T: Send + Sync>(
        &self,
        placed: PlacedRows<'_, T>,
        f: impl Fn([usize; 2], &mut PlaceParts<'_, T>, ColumnBlock<'_, T>) + Sync,
    ) {
        placed.check();
        let PlacedRows { places, place_len, picks, data, row_len, groups, parts } = placed;
        let [places, data] = [places, data].map(|data| Base(data.as_mut_ptr()));
        let [len, width] = [place_len, row_len].map(|values| values / parts);
        self.run(groups.len() * parts, &|task| {
            let (at, part) = (task / parts, task % parts);
            let PlacedGroup { before, picks: own, rows } = &groups[at];
            let mut places = PlaceParts {
                // SAFETY: the part is inside place 0, which is there because a group has a pick.
                base: unsafe { places.get().add(part * len) },
                place_len,
                len,
                before: *before,
                picks: &picks[own.clone()],
                data: PhantomData,
            };
            let block = ColumnBlock {
                // SAFETY: the rows are inside `data`. Groups are disjoint, and so are the columns of parts.
                base: unsafe { data.get().add(rows.start * row_len) },
                places: None,
                rows: rows.len(),
                row_len,
                start: part * width,
                width,
                data: PhantomData,
            };
            f([at, part], &mut places, block);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(before: Option<u32>, picks: Range<usize>, rows: Range<usize>) -> PlacedGroup {
        PlacedGroup { before, picks, rows }
    }

    fn run(threads: usize, picks: &[u32], groups: &[PlacedGroup]) -> (Vec<u32>, Vec<u32>) {
        let (mut places, mut data) = (vec![0; 16], vec![0; 30]);
        places[12..].fill(50);
        let placed = PlacedRows {
            places: &mut places,
            place_len: 4,
            picks,
            data: &mut data,
            row_len: 6,
            groups,
            parts: 2,
        };
        Pool::new(threads).places_mut(placed, |[at, part], places, mut block| {
            let mark = 1 + 2 * at as u32 + part as u32;
            for i in 0..groups[at].picks.len() {
                let (before, to) = places.step(i);
                match before {
                    Before::Nothing => to.fill(mark),
                    Before::Here => to.iter_mut().for_each(|x| *x += mark),
                    Before::There(from) => {
                        to.iter_mut().zip(from).for_each(|(to, from)| *to = from + mark);
                    }
                }
            }
            (0..block.rows()).for_each(|row| block.row_mut(row).fill(mark));
        });
        (places, data)
    }

    #[test]
    fn each_part_of_each_group_goes_through_its_places_once() {
        for threads in 1..4 {
            let groups = [group(None, 0..2, 0..2), group(Some(3), 2..3, 3..4)];
            let (places, data) = run(threads, &[2, 0, 1], &groups);
            assert_eq!(places, [2, 2, 4, 4, 53, 53, 54, 54, 1, 1, 2, 2, 50, 50, 50, 50]);
            let row = |a, b| [a, a, a, b, b, b];
            assert_eq!(data, [row(1, 2), row(1, 2), [0; 6], row(3, 4), [0; 6]].concat()[..]);
        }
        let (places, _) = run(1, &[3], &[group(Some(3), 0..1, 0..1)]);
        assert_eq!(places[12..], [51, 51, 52, 52]);
        let (places, _) = run(1, &[0, 1, 0], &[group(None, 0..3, 0..1)]);
        assert_eq!(places[..8], [3, 3, 6, 6, 2, 2, 4, 4]);
    }

    #[test]
    #[should_panic(expected = "place 1 does not exist, or another group writes to it")]
    fn two_groups_do_not_write_to_the_same_place() {
        run(1, &[1, 1], &[group(None, 0..1, 0..1), group(None, 1..2, 1..2)]);
    }

    #[test]
    #[should_panic(expected = "place 1 does not exist, or another group writes to it")]
    fn a_group_does_not_read_what_another_one_writes() {
        run(1, &[1, 0], &[group(None, 0..1, 0..1), group(Some(1), 1..2, 1..2)]);
    }
}
