//! Rows, sorted by group.

use std::ops::Range;

/// The rows of a matrix, sorted by group: each of them once. Reuses its memory.
#[derive(Debug, Default)]
pub(crate) struct GroupedRows {
    /// All rows: those of the first group in ascending order, then those of the second, …
    order: Vec<u32>,
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
    /// Sorts as many rows as there are in `group_of`, which has the group of each, out of `groups`.
    ///
    /// # Panics
    /// When there is no such group.
    pub(crate) fn sort(&mut self, groups: usize, group_of: &[u32]) {
        self.next.clear();
        self.next.resize(groups, 0);
        group_of.iter().for_each(|group| self.next[*group as usize] += 1);
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
        self.order.clear();
        self.order.resize(group_of.len(), 0);
        for (row, group) in group_of.iter().enumerate() {
            let place = &mut self.next[*group as usize];
            self.order[*place as usize] = row as u32;
            *place += 1;
        }
    }

    /// All rows in their order by group: each row once.
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
        for (groups, of) in
            [(4, vec![3, 0, 3, 1, 0, 3]), (1, vec![0; 5]), (7, vec![]), (2, vec![1])]
        {
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
            assert!(found.into_iter().eq(0..of.len() as u32), "{of:?}");
        }
    }
}
