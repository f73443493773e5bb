//! Unigram, the tokenizer of T5 and XLM-RoBERTa: text is normalised, and becomes the pieces with the best sum of scores.
//!
//! Follows SentencePiece, with scores summed in double precision, as the `tokenizers` crate does. Its own model is not used:
//! it keeps each node of its trie in a hash map of its own, and looks up every piece once more by its text.

mod char_map;
mod prefixes;

use super::error::TokenizerError;
use super::sentence_pieces::SPACE;
use super::token_table::TokenTable;
use super::vocabulary::{TokenKind, Vocabulary};
use char_map::CharMap;
use prefixes::Prefixes;

/// How much less a character without a piece scores than the worst piece, as in SentencePiece.
const UNKNOWN_PENALTY: f32 = 10.0;

/// Longest piece in bytes. The time for a text grows with the longest piece, which has 16 characters in
/// SentencePiece's own defaults.
const PIECE_BYTES_MAX: usize = 256;

/// Unigram over whole texts.
pub(super) struct Unigram {
    char_map: CharMap,
    prefixes: Prefixes,
    unknown: u32,
    unknown_score: f64,
    /// Whether a text starts with a space.
    space_first: bool,
    /// Whether spaces count once, and not at all at the end.
    merge_spaces: bool,
}

/// The best pieces up to a position of the text: the last of them.
#[derive(Clone, Copy)]
struct Best {
    id: u32,
    start: usize,
    /// Sum of all scores; `None` if no pieces end here.
    score: Option<f64>,
}

impl Unigram {
    /// Builds the lookup from a vocabulary whose unknown token has the id `unknown`.
    ///
    /// # Errors
    /// If a piece is too long, or the map of characters is damaged.
    pub(super) fn new(
        vocabulary: &Vocabulary,
        table: &TokenTable,
        unknown: u32,
    ) -> Result<Self, TokenizerError> {
        let kind =
            |id: u32| vocabulary.kinds.get(id as usize).copied().unwrap_or(TokenKind::Normal);
        let is_piece = |id: &u32| {
            matches!(kind(*id), TokenKind::Normal | TokenKind::UserDefined | TokenKind::Unused)
        };
        let pieces: Vec<u32> = (0..table.len()).filter(is_piece).collect();
        let length = |id: u32| table.text(id).len();
        if let Some(id) = pieces.iter().copied().find(|id| length(*id) > PIECE_BYTES_MAX) {
            let most = PIECE_BYTES_MAX;
            return Err(TokenizerError::PieceTooLong { id, length: length(id), most });
        }
        let normal = (0..table.len()).filter(|id| kind(*id) == TokenKind::Normal);
        let worst = normal.map(|id| table.score(id)).fold(f32::MAX, f32::min);
        Ok(Self {
            char_map: CharMap::new(&vocabulary.char_map)?,
            prefixes: Prefixes::new(table, pieces),
            unknown,
            unknown_score: f64::from(worst - UNKNOWN_PENALTY),
            space_first: vocabulary.add_space_prefix.unwrap_or(false),
            merge_spaces: vocabulary.remove_extra_whitespaces.unwrap_or(false),
        })
    }

    /// The unknown token.
    pub(super) fn unknown(&self) -> u32 {
        self.unknown
    }

    /// Whether encoding adds a space before a text.
    pub(super) fn adds_space(&self) -> bool {
        self.space_first || self.merge_spaces
    }

    /// Appends the ids of `text`. Neighbouring characters without a piece are one unknown token.
    ///
    /// Takes O(n) for n bytes of text, times the length of the longest piece.
    pub(super) fn encode(&self, table: &TokenTable, text: &str, ids: &mut Vec<u32>) {
        let text = self.normalised(text);
        let best = self.best(table, &text);
        let first = ids.len();
        let mut end = text.len();
        while end > 0 {
            let Best { id, start, .. } = best[end];
            let repeats = id == self.unknown && ids.len() > first && ids.last() == Some(&id);
            if !repeats {
                ids.push(id);
            }
            end = start;
        }
        ids[first..].reverse();
    }

    /// The best pieces up to each position. Positions inside a character have none.
    fn best(&self, table: &TokenTable, text: &str) -> Vec<Best> {
        let mut best = vec![Best { id: self.unknown, start: 0, score: None }; text.len() + 1];
        best[0].score = Some(0.0);
        for (start, char) in text.char_indices() {
            let Some(before) = best[start].score else { continue };
            let mut offer = |id: u32, length: usize, score: f64| {
                let end = &mut best[start + length];
                if end.score.is_none_or(|other| before + score > other) {
                    *end = Best { id, start, score: Some(before + score) };
                }
            };
            let mut has_own = false;
            self.prefixes.each(table, &text.as_bytes()[start..], |id, length| {
                has_own |= length == char.len_utf8();
                // Scores are negative: those that the model's author added are the best.
                let is_added = table.traits(id).user_defined;
                offer(id, length, if is_added { 0.0 } else { f64::from(table.score(id)) });
            });
            if !has_own {
                offer(self.unknown, char.len_utf8(), self.unknown_score);
            }
        }
        best
    }

    /// The text with its characters mapped and U+2581 for spaces.
    fn normalised(&self, text: &str) -> String {
        let mut normalised = String::with_capacity(text.len() + text.len() / 2);
        let mut rest = text;
        let mut in_word = false;
        let mut needs_space = self.space_first;
        while let Some(first) = rest.chars().next() {
            let (mapped, length) = match self.char_map.longest(rest) {
                Some(found) => (found.replacement, found.length),
                None => (&rest[..first.len_utf8()], first.len_utf8()),
            };
            for char in mapped.chars() {
                if char == ' ' {
                    in_word = false;
                    if !self.merge_spaces {
                        normalised.push_str(SPACE);
                    }
                    continue;
                }
                if !in_word && (needs_space || self.merge_spaces) {
                    normalised.push_str(SPACE);
                    needs_space = false;
                }
                in_word = true;
                normalised.push(char);
            }
            rest = &rest[length..];
        }
        normalised
    }

    /// A number of tokens that `text` has at least: ASCII letters and digits beside others are parts of pieces, if each
    /// has a piece of its own and stays what it is.
    pub(super) fn tokens_at_least(&self, table: &TokenTable, text: &str) -> usize {
        let keeps: [bool; 256] = std::array::from_fn(|byte| {
            let byte = byte as u8;
            let mut has_own = false;
            self.prefixes.each(table, &[byte], |_, _| has_own = true);
            byte.is_ascii_alphanumeric() && has_own && self.char_map.keeps(byte)
        });
        let inner = text.as_bytes().windows(3);
        let kept =
            inner.filter(|window| window.iter().all(|byte| keeps[usize::from(*byte)])).count();
        // A piece stands for at most as many bytes as its own text has.
        kept.div_ceil(table.text_len_max().max(1))
    }
}
