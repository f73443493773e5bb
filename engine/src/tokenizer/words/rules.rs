//! The named word rules, as data. The patterns are those of the models' own tokenizers, which llama.cpp
//! approximates in places: it takes every letter but a to z for a capital, and digits before letters for a number.

mod patterns;
mod portable;
mod table;

use crate::tokenizer::error::TokenizerError;

/// One step of a chain.
#[derive(Clone, Copy, Debug)]
pub(in crate::tokenizer) struct Step {
    /// Pattern of a word. Text between words is kept as it is.
    pub(super) pattern: &'static str,
    /// What else is cut.
    pub(super) cut: Cut,
}

/// How a step cuts what its pattern matches, and what it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// A match is a word.
    Words,
    /// A match is a word. White space between words is split off too, except its last character if a word follows:
    /// `\s+(?!\S)|\s+`.
    WordsAndSpaces,
    /// As [`Cut::WordsAndSpaces`], and the white space is cut into runs of 512, 256 and so on down to 1
    /// characters, the longest first.
    WordsAndSpacesByPowers,
    /// A match is a number. It is cut into groups of three characters, counted from its end.
    Thousands,
}

/// How words are spelled in the token list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tokenizer) enum Spelling {
    /// Byte by byte, with the characters of [`byte_alphabet`](crate::tokenizer::byte_alphabet).
    Bytes,
    /// As it is, with U+2581 for spaces.
    Pieces,
    /// As [`Spelling::Pieces`]; every line starts with a space.
    PiecesAfterSpace,
}

/// Which words are taken whole if they are tokens, regardless of merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tokenizer) enum Whole {
    /// None.
    Never,
    /// Those of line feeds only.
    LineFeeds,
    /// All.
    Always,
}

/// Whether text starts with the begin token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tokenizer) enum Begin {
    /// Only if the file says so.
    Off,
    /// Unless the file says otherwise.
    On,
    /// Always: files that say otherwise are known to be wrong.
    Always,
}

impl Begin {
    /// Whether text starts with the begin token if the file says `stated`.
    pub(in crate::tokenizer) fn is_on(self, stated: Option<bool>) -> bool {
        match self {
            Self::Off => stated.unwrap_or(false),
            Self::On => stated.unwrap_or(true),
            Self::Always => true,
        }
    }
}

/// Rules with one or more values of `tokenizer.ggml.pre`.
#[derive(Clone, Copy, Debug)]
pub(in crate::tokenizer) struct WordRules {
    /// The values that select these rules.
    names: &'static [&'static str],
    /// Patterns, applied one after the other.
    pub(in crate::tokenizer) steps: &'static [Step],
    /// How words are spelled.
    pub(in crate::tokenizer) spelling: Spelling,
    /// Which words are taken whole.
    pub(in crate::tokenizer) whole: Whole,
    /// Whether text starts with the begin token.
    pub(in crate::tokenizer) begin: Begin,
    /// Whether there is a begin token when the file states none.
    pub(in crate::tokenizer) has_bos: bool,
}

impl WordRules {
    /// The rules called `name`.
    ///
    /// # Errors
    /// [`TokenizerError::UnknownWordRules`] lists all names.
    pub(in crate::tokenizer) fn named(name: &str) -> Result<&'static Self, TokenizerError> {
        table::ALL.iter().find(|rules| rules.names.contains(&name)).ok_or_else(|| {
            TokenizerError::UnknownWordRules { pre: name.to_owned(), supported: Self::names() }
        })
    }

    /// All names, sorted and joined with commas.
    fn names() -> String {
        let mut names: Vec<&str> =
            table::ALL.iter().flat_map(|rules| rules.names).copied().collect();
        names.sort_unstable();
        names.join(", ")
    }
}
