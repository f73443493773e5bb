//! SentencePiece BPE: joins neighbouring symbols, best score first, as long as the joined text is a
//! token; unknown text is written byte by byte.

use super::joiner::{self, Joins};
use super::token_table::TokenTable;

/// SentencePiece's character for a space.
pub(super) const SPACE: &str = "\u{2581}";

/// Joins neighbours whose joined text is a token.
struct ByScore<'a>(&'a TokenTable);

impl Joins for ByScore<'_> {
    fn priority(&self, joined: &str, _left: usize) -> Option<f64> {
        self.0.id(joined).map(|id| f64::from(self.0.score(id)))
    }
}

/// Appends the ids of `text`, in which spaces are already replaced by [`SPACE`].
///
/// Takes O(n log n) for n characters.
pub(super) fn encode(table: &TokenTable, text: &str, ids: &mut Vec<u32>) {
    joiner::encode(table, &ByScore(table), text, ids);
}
