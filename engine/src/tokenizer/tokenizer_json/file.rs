//! The form of the file.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::added::AddedToken;

/// The whole file.
#[derive(Serialize)]
pub(super) struct File<'a> {
    pub(super) version: &'static str,
    pub(super) truncation: (),
    pub(super) padding: (),
    pub(super) added_tokens: Vec<AddedToken<'a>>,
    pub(super) normalizer: Value,
    pub(super) pre_tokenizer: Value,
    pub(super) post_processor: Value,
    pub(super) decoder: Value,
    pub(super) model: Model<'a>,
}

/// The parts of the file that depend on the method by which text becomes ids.
pub(super) struct Parts<'a> {
    pub(super) normalizer: Value,
    pub(super) pre_tokenizer: Value,
    pub(super) decoder: Value,
    pub(super) model: Model<'a>,
}

/// The model.
#[derive(Serialize)]
#[serde(tag = "type")]
pub(super) enum Model<'a> {
    /// BPE by ranks.
    #[serde(rename = "BPE")]
    Bpe {
        dropout: (),
        unk_token: Option<&'a str>,
        continuing_subword_prefix: (),
        end_of_word_suffix: (),
        fuse_unk: bool,
        byte_fallback: bool,
        ignore_merges: bool,
        vocab: Ids<&'a str>,
        merges: Vec<[&'a str; 2]>,
    },
    /// Unigram.
    Unigram { unk_id: u32, vocab: Vec<(&'a str, f64)>, byte_fallback: bool },
    /// WordPiece.
    WordPiece {
        unk_token: String,
        continuing_subword_prefix: &'static str,
        max_input_chars_per_word: usize,
        vocab: Ids<String>,
    },
}

/// Texts, each of which is written with its position as its id.
pub(super) struct Ids<T>(pub(super) Vec<T>);

impl<T: AsRef<str>> Serialize for Ids<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().zip(0_u32..).map(|pair| (pair.0.as_ref(), pair.1)))
    }
}
