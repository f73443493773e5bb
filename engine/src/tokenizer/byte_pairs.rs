//! Byte-level BPE: merges the characters of each word pair by pair, best rank first.
//!
//! The `tokenizers` crate merges. This file handles what that crate would reject or skip: merges
//! that name missing tokens, and characters that are not tokens.

use std::collections::HashSet;

use tokenizers::Model;
use tokenizers::models::bpe::{BPE, Vocab};

use super::byte_alphabet;
use super::error::TokenizerError;
use super::words::{Whole, WordRules, WordSplitter};

/// Byte-level BPE over words.
pub(super) struct BytePairs {
    splitter: WordSplitter,
    model: BPE,
    /// Characters of single bytes that are not tokens: they produce no id and split the word.
    missing: Vec<char>,
}

impl BytePairs {
    /// Builds the merge table from `tokens` and from `merges` written as `left right`.
    ///
    /// Of duplicate merges the first counts; a merge whose parts or result are not tokens can
    /// never produce an id and is left out.
    pub(super) fn new(
        tokens: &[String],
        merges: &[String],
        rules: &WordRules,
    ) -> Result<Self, TokenizerError> {
        let vocab: Vocab = tokens.iter().cloned().zip(0..).collect();
        let mut seen = HashSet::with_capacity(merges.len());
        let mut pairs = Vec::with_capacity(merges.len());
        let mut joined = String::new();
        for merge in merges {
            let Some((left, right)) = split_merge(merge) else {
                continue;
            };
            joined.clear();
            joined.push_str(left);
            joined.push_str(right);
            let known = [left, right, joined.as_str()].iter().all(|text| vocab.contains_key(*text));
            if known && seen.insert((left, right)) {
                pairs.push((left.to_owned(), right.to_owned()));
            }
        }
        let missing = (0..=u8::MAX)
            .map(byte_alphabet::char_of)
            .filter(|char| !vocab.contains_key(char.encode_utf8(&mut [0; 4]) as &str))
            .collect();
        // The crate's word cache would live in thread-locals for as long as the process.
        let model = BPE::builder()
            .vocab_and_merges(vocab, pairs)
            .ignore_merges(rules.whole == Whole::Always)
            .cache_capacity(0)
            .build()
            .map_err(|source| TokenizerError::Merges { source })?;
        Ok(Self { splitter: WordSplitter::new(rules)?, model, missing })
    }

    /// Whether a byte is a token, so that no text leaves it out.
    pub(super) fn has_byte(&self, byte: u8) -> bool {
        !self.missing.contains(&byte_alphabet::char_of(byte))
    }

    /// Appends the ids of `text`.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let mut word = String::new();
        for range in self.splitter.split(text) {
            byte_alphabet::write(&text[range], &mut word);
            if self.missing.is_empty() {
                self.encode_word(&word, ids);
            } else {
                word.split(self.missing.as_slice()).for_each(|part| self.encode_word(part, ids));
            }
        }
    }

    fn encode_word(&self, word: &str, ids: &mut Vec<u32>) {
        // Without an unknown token and without dropout the model cannot fail.
        let tokens = self.model.tokenize(word).unwrap_or_default();
        ids.extend(tokens.iter().map(|token| token.id));
    }
}

/// Splits `left right` at the first space that is not the first character.
pub(super) fn split_merge(merge: &str) -> Option<(&str, &str)> {
    let first = merge.chars().next()?.len_utf8();
    let at = first + merge.get(first..)?.find(' ')?;
    Some((&merge[..at], &merge[at + 1..]))
}
