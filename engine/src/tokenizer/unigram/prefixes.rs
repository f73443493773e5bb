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
        let bytes = |id: &u32| table.text(*id).as_bytes();
        let mut range = &self.sorted[self.starts[first]..self.starts[first + 1]];
        let mut last = range.last().map(bytes);
        for depth in 1..=text.len() {
            // All of the range begin with these `depth` bytes, and the shortest stands first.
            if let Some(id) = range.first().filter(|id| bytes(id).len() == depth) {
                found(*id, depth);
                range = &range[1..];
            }
            let Some(byte) = text.get(depth) else { return };
            let (Some(begin), Some(end)) = (range.first().map(bytes), last) else { return };
            if begin[depth] != *byte || end[depth] != *byte {
                let start = range.partition_point(|id| bytes(id)[depth] < *byte);
                let end = range.partition_point(|id| bytes(id)[depth] <= *byte);
                range = &range[start..end];
                last = range.last().map(bytes);
            }
        }
    }
}
