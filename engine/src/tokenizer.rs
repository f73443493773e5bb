//! Converts text to token ids and back, with the vocabulary of a weight file.
//!
//! Supports BPE on bytes (`gpt2`) and on pieces (`gemma4`, and `gpt2` with some word rules), SentencePiece BPE (`llama`) and
//! Unigram (`t5`), whose ids equal llama.cpp's, and WordPiece (`bert`), whose ids equal those of the `tokenizers` crate. In a
//! file without a vocabulary (`none`) a text is ids with spaces between them. Encoding takes three steps: special tokens are
//! cut out of the text, the text between them is split into words (not by `llama` and `t5`), and each word becomes tokens.

mod build;
mod byte_alphabet;
mod byte_pairs;
mod compare;
mod detokenizer;
mod error;
mod ids;
mod joiner;
mod least;
mod metadata;
mod pairs;
mod ranked_pieces;
mod roles;
mod sentence_pieces;
mod special_tokens;
mod token_table;
mod tokenizer_json;
mod unigram;
mod vocabulary;
mod word_pieces;
mod words;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use byte_pairs::BytePairs;
pub use compare::VocabularyDifference;
pub use detokenizer::Detokenizer;
pub use error::{NotAnId, TokenizerError};
use pairs::Separation;
use ranked_pieces::RankedPieces;
use roles::Roles;
use special_tokens::{Control, Fragment, SpecialTokens};
use token_table::TokenTable;
pub use tokenizer_json::{Inexpressible, Overlap};
use unigram::Unigram;
pub use vocabulary::{RoleIds, TokenKind, Vocabulary};
use word_pieces::WordPieces;

/// Whether control tokens written in a text are read as control tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// `<|im_start|>` in the text is the control token: for text that the caller wrote in the model's
    /// own format.
    Parse,
    /// `<|im_start|>` in the text is ten characters: for untrusted text. User-defined tokens are
    /// matched in either case.
    Plain,
}

/// A tokenizer; clones share one vocabulary.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<Inner>,
}

struct Inner {
    table: TokenTable,
    specials: SpecialTokens,
    method: Method,
    roles: Roles,
    separation: Separation,
    add_bos: bool,
    add_eos: bool,
    add_space_prefix: bool,
}

/// The method that converts text between special tokens to ids.
enum Method {
    BytePairs(Box<BytePairs>),
    RankedPieces(Box<RankedPieces>),
    SentencePieces,
    Unigram(Box<Unigram>),
    WordPieces(Box<WordPieces>),
    /// A text is ids.
    Ids,
}

impl Tokenizer {
    /// The ids of `text`.
    ///
    /// `add_ends` adds the begin and end tokens that the file requests; without it, none are added.
    /// Takes time close to linear in the length of the text.
    pub fn encode(&self, text: &str, special: Special, add_ends: bool) -> Vec<u32> {
        self.inner.encode(text, special.control(), add_ends)
    }

    /// Checks that [`encode`](Self::encode) reads all of a text: one for a model without a tokenizer must be ids.
    ///
    /// # Errors
    /// [`NotAnId`] of the first word that is no id.
    pub fn check(&self, text: &str) -> Result<(), NotAnId> {
        match self.inner.method {
            Method::Ids => ids::check(text, self.inner.table.len()),
            _ => Ok(()),
        }
    }

    /// The ids of a rendered conversation: control tokens are matched only where they contain none of
    /// the byte positions `foreign`, which are ascending.
    pub(crate) fn encode_rendered(&self, text: &str, foreign: &[usize]) -> Vec<u32> {
        self.inner.encode(text, Control::Without(foreign), true)
    }

    /// Texts of the control tokens, by their kind or by their look, longest first.
    pub(crate) fn control_texts(&self) -> impl Iterator<Item = &str> {
        self.inner.specials.control_texts()
    }

    /// Positions in bytes, ascending, where control tokens start in `text`; none of white space only.
    pub(crate) fn control_positions(&self, text: &str) -> Vec<usize> {
        self.inner.specials.control_positions(text)
    }

    /// The text of `ids`, without control tokens. Invalid UTF-8 becomes U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut detokenizer = self.detokenizer(&[]);
        let mut text: String = ids.iter().map(|id| detokenizer.push(*id)).collect();
        text.push_str(&detokenizer.finish());
        text
    }

    /// A [`Detokenizer`] for ids that follow `before`, usually the prompt. The last id of `before`
    /// decides whether a leading space is text or was added by encoding.
    pub fn detokenizer(&self, before: &[u32]) -> Detokenizer {
        Detokenizer::new(self.clone(), before)
    }

    /// The bytes of token `id`; they need not be whole characters. Control tokens give their name.
    /// `None` if there is no such id.
    pub fn token_bytes(&self, id: u32) -> Option<Cow<'_, [u8]>> {
        let table = &self.inner.table;
        if id >= table.len() {
            return None;
        }
        let (traits, text) = (table.traits(id), table.text(id));
        Some(if traits.is_special() {
            Cow::Borrowed(text.as_bytes())
        } else if traits.byte {
            Cow::Owned(table.byte(id).into_iter().collect())
        } else if !traits.normal {
            Cow::Borrowed(&[])
        } else {
            match self.inner.method {
                Method::BytePairs(_) => Cow::Owned(table.byte_level_bytes(id)),
                Method::Ids => Cow::Borrowed(text.as_bytes()),
                _ => Cow::Owned(text.replace(sentence_pieces::SPACE, " ").into_bytes()),
            }
        })
    }

    /// The text of token `id` as the vocabulary spells it, with stand-ins for spaces and bytes.
    pub fn token_text(&self, id: u32) -> Option<&str> {
        (id < self.inner.table.len()).then(|| self.inner.table.text(id))
    }

    /// The id of the token that the vocabulary spells exactly `text`.
    pub fn token_id(&self, text: &str) -> Option<u32> {
        self.inner.table.id(text)
    }

    /// Number of tokens; every id is below it.
    pub fn vocab_size(&self) -> usize {
        self.inner.table.len() as usize
    }

    /// The begin token, whether or not [`encode`](Self::encode) adds it.
    pub fn bos(&self) -> Option<u32> {
        self.inner.roles.bos
    }

    /// The end-of-text token that the file states.
    pub fn eos(&self) -> Option<u32> {
        self.inner.roles.eos
    }

    /// Every token that ends a generation, ascending: end of text, of turn and of message, and
    /// end tokens known by their text.
    pub fn eos_ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.inner.roles.ends.iter().copied()
    }

    /// Whether `id` ends a generation.
    pub fn is_end(&self, id: u32) -> bool {
        self.inner.roles.ends.contains(&id)
    }

    /// Whether `id` is a control or unknown token, which is not part of the visible text.
    pub fn is_control(&self, id: u32) -> bool {
        self.inner.table.traits(id).is_hidden()
    }

    /// Whether the file requests the begin token before a text.
    pub fn adds_bos(&self) -> bool {
        self.inner.add_bos && self.inner.roles.bos.is_some()
    }

    /// Whether the file requests the end token behind a text.
    pub(crate) fn adds_eos(&self) -> bool {
        self.inner.add_eos && self.inner.roles.eos.is_some()
    }

    /// The token of text that the vocabulary cannot express, if the method has one.
    fn unknown(&self) -> Option<u32> {
        match &self.inner.method {
            Method::Unigram(unigram) => Some(unigram.unknown()),
            Method::WordPieces(pieces) => Some(pieces.unknown()),
            _ => None,
        }
    }

    /// Whether `id` is matched in text before word rules apply.
    pub(crate) fn is_special(&self, id: u32) -> bool {
        self.inner.table.traits(id).is_special()
    }

    /// Whether encoding adds a space before text at the start or after a special token.
    fn adds_space_prefix(&self) -> bool {
        match &self.inner.method {
            Method::BytePairs(_) => false,
            Method::RankedPieces(pieces) => pieces.adds_space(),
            Method::Unigram(unigram) => unigram.adds_space(),
            Method::SentencePieces | Method::WordPieces(_) | Method::Ids => {
                self.inner.add_space_prefix
            }
        }
    }
}

impl Special {
    fn control(self) -> Control<'static> {
        match self {
            Self::Parse => Control::Everywhere,
            Self::Plain => Control::Nowhere,
        }
    }
}

impl Inner {
    fn encode(&self, text: &str, control: Control<'_>, add_ends: bool) -> Vec<u32> {
        let mut ids = Vec::new();
        if add_ends && self.add_bos {
            ids.extend(self.roles.bos);
        }
        let mut after_token = true;
        for fragment in self.specials.partition(text, control) {
            match fragment {
                Fragment::Token(id) => ids.push(id),
                Fragment::Text(text) => self.encode_text(text, after_token, &mut ids),
            }
            after_token = matches!(fragment, Fragment::Token(_));
        }
        if add_ends && self.add_eos {
            ids.extend(self.roles.eos);
        }
        ids
    }

    /// Appends the ids of text without special tokens.
    fn encode_text(&self, text: &str, after_token: bool, ids: &mut Vec<u32>) {
        match &self.method {
            Method::BytePairs(pairs) => pairs.encode(text, ids),
            Method::RankedPieces(pieces) => pieces.encode(&self.table, text, ids),
            Method::Unigram(unigram) => unigram.encode(&self.table, text, ids),
            Method::WordPieces(pieces) => pieces.encode(text, ids),
            Method::Ids => ids::encode(text, self.table.len(), ids),
            Method::SentencePieces => {
                let prefix = if self.add_space_prefix && after_token { " " } else { "" };
                let text = format!("{prefix}{text}").replace(' ', sentence_pieces::SPACE);
                sentence_pieces::encode(&self.table, &text, ids);
            }
        }
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("vocab_size", &self.vocab_size())
            .field("roles", &self.inner.roles)
            .finish_non_exhaustive()
    }
}
