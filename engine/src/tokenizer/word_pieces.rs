//! WordPiece, the tokenizer of BERT: text is normalised and split into words, and each word becomes the
//! longest tokens that spell it, from its beginning on.
//!
//! The `tokenizers` crate does all three steps. This file turns the vocabulary of a weight file into the
//! crate's: there a token that begins a word has U+2581 before it, and all others are written plainly.

use tokenizers::models::bpe::Vocab;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{
    Model, NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString,
    PreTokenizer,
};

use super::error::TokenizerError;
use super::sentence_pieces::SPACE;
use super::vocabulary::{TokenKind, Vocabulary};

/// Characters of the longest word that is looked up; a longer one is the unknown token, as in BERT.
pub(super) const WORD_CHARS_MAX: usize = 100;

/// Prefix of tokens that continue a word, in the crate's vocabulary.
pub(super) const CONTINUES: &str = "##";

/// Token texts of the roles in every vocabulary of BERT.
pub(super) const BEGIN: &str = "[CLS]";
pub(super) const END: &str = "[SEP]";
pub(super) const UNKNOWN: &str = "[UNK]";

/// WordPiece over normalised words.
pub(super) struct WordPieces {
    normalizer: BertNormalizer,
    model: WordPiece,
    unknown: u32,
}

impl WordPieces {
    /// Builds the lookup from a vocabulary whose unknown token has the id `unknown`.
    pub(super) fn new(vocabulary: &Vocabulary, unknown: u32) -> Result<Self, TokenizerError> {
        let vocab: Vocab = spelled(vocabulary).zip(0..).collect();
        let unknown_text = spelled(vocabulary).nth(unknown as usize).unwrap_or_default();
        let model = WordPiece::builder()
            .vocab(vocab)
            .unk_token(unknown_text)
            .continuing_subword_prefix(CONTINUES.to_owned())
            .max_input_chars_per_word(WORD_CHARS_MAX)
            .build()
            .map_err(|source| TokenizerError::WordPieces { source })?;
        Ok(Self { normalizer: normalizer(vocabulary), model, unknown })
    }

    /// The unknown token.
    pub(super) fn unknown(&self) -> u32 {
        self.unknown
    }

    /// Appends the ids of `text`.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let mut normalized = NormalizedString::from(text);
        // Neither step has a failure of its own, and the unknown token is in the vocabulary.
        if self.normalizer.normalize(&mut normalized).is_err() {
            return;
        }
        let mut words = PreTokenizedString::from(normalized);
        if BertPreTokenizer.pre_tokenize(&mut words).is_err() {
            return;
        }
        for (word, ..) in words.get_splits(OffsetReferential::Normalized, OffsetType::Byte) {
            match self.model.tokenize(word) {
                Ok(tokens) => ids.extend(tokens.iter().map(|token| token.id)),
                Err(_) => ids.push(self.unknown),
            }
        }
    }
}

/// How a text is normalised before it is split into words.
pub(super) fn normalizer(vocabulary: &Vocabulary) -> BertNormalizer {
    let lowercase = vocabulary.lowercase.unwrap_or(true);
    let strip_accents = vocabulary.strip_accents.unwrap_or(lowercase);
    BertNormalizer::new(true, true, Some(strip_accents), lowercase)
}

/// The tokens as the crate spells them, in the order of their ids.
pub(super) fn spelled(vocabulary: &Vocabulary) -> impl Iterator<Item = String> {
    let kind = |id: usize| vocabulary.kinds.get(id).copied().unwrap_or(TokenKind::Normal);
    vocabulary.tokens.iter().enumerate().map(move |(id, text)| match text.strip_prefix(SPACE) {
        Some(begins) => begins.to_owned(),
        None if kind(id) == TokenKind::Normal => format!("{CONTINUES}{text}"),
        None => text.clone(),
    })
}

/// A number of words that `text` has at least, counting only what stays a word of its own whatever
/// stands beside it: each ASCII punctuation character, and each ASCII letter or digit that follows white
/// space or punctuation, other letters and digits aside.
pub(super) fn words_at_least(text: &str) -> usize {
    let mut words = 0;
    let mut in_word = false;
    for byte in text.bytes() {
        if byte.is_ascii_punctuation() {
            words += 1;
            in_word = false;
        } else if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            in_word = false;
        } else if byte.is_ascii_alphanumeric() && !in_word {
            words += 1;
            in_word = true;
        }
    }
    words
}
