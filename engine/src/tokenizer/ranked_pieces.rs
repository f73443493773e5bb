//! BPE by ranks on text as it is: spaces are U+2581, neighbours are joined in the order of the merges, and unknown text
//! is written byte by byte.

use hashbrown::HashMap;

use super::byte_pairs::split_merge;
use super::error::TokenizerError;
use super::joiner::{self, Joins};
use super::sentence_pieces::SPACE;
use super::token_table::TokenTable;
use super::words::{Spelling, Whole, WordRules, WordSplitter};

/// BPE over words of pieces.
pub(super) struct RankedPieces {
    splitter: WordSplitter,
    merges: Merges,
    whole: Whole,
    /// Whether every line starts with a space.
    after_space: bool,
}

/// Rank of each pair of tokens that may be joined.
type Merges = HashMap<(u32, u32), u32>;

/// Joins neighbours by the rank of their merge.
struct ByRank<'a> {
    table: &'a TokenTable,
    merges: &'a Merges,
}

impl Joins for ByRank<'_> {
    fn priority(&self, joined: &str, left: usize) -> Option<f64> {
        // A merge makes a token, and no text that is longer than any is looked up.
        if joined.len() > self.table.text_len_max() {
            return None;
        }
        let pair = (self.table.id(&joined[..left])?, self.table.id(&joined[left..])?);
        self.merges.get(&pair).map(|rank| -f64::from(*rank))
    }
}

impl RankedPieces {
    /// Builds the merge table from `merges` written as `left right`.
    ///
    /// Of duplicate merges the first counts; a merge whose parts or result are not tokens is left out.
    pub(super) fn new(
        table: &TokenTable,
        merges: &[String],
        rules: &WordRules,
    ) -> Result<Self, TokenizerError> {
        let mut ranks = Merges::with_capacity(merges.len());
        for (merge, rank) in merges.iter().zip(0..) {
            let Some((left, right)) = split_merge(merge) else {
                continue;
            };
            let is_token = table.id(&[left, right].concat()).is_some();
            if let (Some(left), Some(right), true) = (table.id(left), table.id(right), is_token) {
                ranks.entry((left, right)).or_insert(rank);
            }
        }
        Ok(Self {
            splitter: WordSplitter::new(rules)?,
            merges: ranks,
            whole: rules.whole,
            after_space: rules.spelling == Spelling::PiecesAfterSpace,
        })
    }

    /// Whether encoding adds a space before a text.
    pub(super) fn adds_space(&self) -> bool {
        self.after_space
    }

    /// The longest word of line feeds only that is a token and that merges do not make.
    pub(super) fn line_feeds_without_merges(&self, table: &TokenTable) -> Option<u32> {
        let joins = ByRank { table, merges: &self.merges };
        let most = table.text_len_max();
        (1..=most).rev().map(|count| "\n".repeat(count)).find_map(|word| {
            let id = table.id(&word)?;
            let mut ids = Vec::new();
            joiner::encode(table, &joins, &word, &mut ids);
            (ids != [id]).then_some(id)
        })
    }

    /// Appends the ids of `text`.
    ///
    /// Takes O(n log n) for n characters.
    pub(super) fn encode(&self, table: &TokenTable, text: &str, ids: &mut Vec<u32>) {
        let text = self.spelled(text);
        let joins = ByRank { table, merges: &self.merges };
        for range in self.splitter.split(&text) {
            let word = &text[range];
            let whole = match self.whole {
                Whole::Never => None,
                Whole::LineFeeds if word.starts_with('\n') => table.id(word),
                Whole::LineFeeds => None,
                Whole::Always => table.id(word),
            };
            match whole {
                Some(id) => ids.push(id),
                None => joiner::encode(table, &joins, word, ids),
            }
        }
    }

    /// The text with U+2581 for spaces, also before every line if the rules say so.
    fn spelled(&self, text: &str) -> String {
        let text = text.replace(' ', SPACE);
        if !self.after_space {
            return text;
        }
        let mut spelled = String::with_capacity(text.len() + SPACE.len());
        for line in text.split_inclusive('\n') {
            if !line.starts_with(['\n', '\u{2581}']) {
                spelled.push_str(SPACE);
            }
            spelled.push_str(line);
        }
        spelled
    }
}
