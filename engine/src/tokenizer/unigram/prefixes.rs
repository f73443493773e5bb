//! The pieces that a text begins with.

use crate::tokenizer::token_table::TokenTable;

/// Pieces in the order of their texts: those that begin alike stand together, which makes the list a trie.
pub(super) struct Prefixes {
    sorted: Vec<u32>,
    /// Where the pieces with each first byte start, and at last where all end.
    starts: Vec<usize>,
}

impl Prefixes {
    /// Sorts `pieces` by their texts in `table`, none of which is empty.
    pub(super) fn new(table: &TokenTable, mut pieces: Vec<u32>) -> Self {
        pieces.sort_unstable_by_key(|id| table.text(*id));
        let first = |id: &u32| table.text(*id).as_bytes().first().copied().map_or(0, usize::from);
        let starts = (0..=256).map(|byte| pieces.partition_point(|id| first(id) < byte)).collect();
        Self { sorted: pieces, starts }
    }

    /// Calls `found` with the id and the length in bytes of each piece that `text` begins with, shortest first.
    pub(super) fn each(&self, table: &TokenTable, text: &[u8], mut found: impl FnMut(u32, usize)) {
        let Some(first) = text.first().copied().map(usize::from) else { return };
        let mut range = &self.sorted[self.starts[first]..self.starts[first + 1]];
        for depth in 1..=text.len() {
            // All of the range begin with these `depth` bytes, and the shortest stands first.
            if let Some(id) = range.first().filter(|id| table.text(**id).len() == depth) {
                found(*id, depth);
                range = &range[1..];
            }
            let Some(byte) = text.get(depth) else { return };
            range = narrowed(range, |id| table.text(*id).as_bytes()[depth].cmp(byte));
            if range.is_empty() {
                return;
            }
        }
    }
}

/// The part of a sorted list that compares equal.
fn narrowed(list: &[u32], compare: impl Fn(&u32) -> std::cmp::Ordering) -> &[u32] {
    let is_all = |id: Option<&u32>| id.is_some_and(|id| compare(id).is_eq());
    if is_all(list.first()) && is_all(list.last()) {
        return list;
    }
    let start = list.partition_point(|id| compare(id).is_lt());
    let end = list.partition_point(|id| compare(id).is_le());
    &list[start..end]
}
