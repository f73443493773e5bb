//! Rows, sorted by group.

use std::ops::Range;

/// The rows of a matrix, sorted by group: each of them at most once. Reuses its memory.
#[derive(Debug, Default)]
pub(crate) struct GroupedRows {
    /// The rows of the first group in ascending order, then those of the second, …
    order: Vec<u32>,
    /// Rows of the matrix, with those that are in no group.
    rows: usize,
    groups: Vec<RowGroup>,
    /// For each group, where its next row is put.
    next: Vec<u32>,
}

/// A group that has rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowGroup {
    /// Its number.
    pub(crate) group: usize,
    /// Its rows in the order.
    pub(crate) rows: Range<usize>,
}

impl GroupedRows {
    /// In place of the group of a row that is in none.
    pub(crate) const NO_GROUP: u32 = u32::MAX;

    /// Sorts as many rows as there are in `group_of`, which has the group of each, out of `groups`, or
    /// [`NO_GROUP`](GroupedRows::NO_GROUP).
    ///
    /// # Panics
    /// When there is no such group.
    pub(crate) fn sort(&mut self, groups: usize, group_of: &[u32]) {
        self.next.clear();
        self.next.resize(groups, 0);
        let grouped =
            group_of.iter().zip(0..).filter(|(group, _)| **group != GroupedRows::NO_GROUP);
        grouped.clone().for_each(|(group, _)| self.next[*group as usize] += 1);
        self.groups.clear();
        let mut end = 0;
        for (group, count) in self.next.iter_mut().enumerate() {
            let start = end;
            end += *count as usize;
            if end > start {
                self.groups.push(RowGroup { group, rows: start..end });
            }
            *count = start as u32;
        }
        assert!(u32::try_from(group_of.len()).is_ok(), "more rows than their numbers");
        self.rows = group_of.len();
        self.order.clear();
        self.order.resize(end, 0);
        for (group, row) in grouped {
            let place = &mut self.next[*group as usize];
            self.order[*place as usize] = row;
            *place += 1;
        }
    }

    /// Rows of the matrix, with those that are in no group.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The rows of all groups in their order by group: each row once, and below [`rows`](GroupedRows::rows).
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    /// The groups that have rows, in ascending order.
    pub(crate) fn groups(&self) -> &[RowGroup] {
        &self.groups
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_in_its_group_once_and_in_order() {
        let mut rows = GroupedRows::default();
        const NO: u32 = GroupedRows::NO_GROUP;
        for (groups, of) in [
            (4, vec![3, 0, 3, 1, 0, 3]),
            (1, vec![0; 5]),
            (7, vec![]),
            (2, vec![1]),
            (4, vec![NO, 2, NO, 1, 2]),
            (3, vec![NO; 4]),
        ] {
            rows.sort(groups, &of);
            let mut found = Vec::new();
            for RowGroup { group, rows: range } in rows.groups() {
                let own = &rows.order()[range.clone()];
                assert!(own.is_sorted() && !own.is_empty());
                assert!(own.iter().all(|row| of[*row as usize] == *group as u32));
                found.extend_from_slice(own);
            }
            assert_eq!(found, rows.order());
            found.sort_unstable();
            let grouped = (0..of.len() as u32).filter(|row| of[*row as usize] != NO);
            assert!(found.into_iter().eq(grouped), "{of:?}");
            assert_eq!(rows.rows(), of.len());
        }
    }
}
