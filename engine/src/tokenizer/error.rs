//! Errors of vocabularies.

/// A text for a model without a tokenizer has a word that is no id.
#[derive(Debug, thiserror::Error)]
#[error(
    "the model has no tokenizer, so a text is ids from 0 to {last} with spaces between them, which '{word}' is not"
)]
#[non_exhaustive]
pub struct NotAnId {
    /// The word, or its beginning.
    pub word: String,
    /// The largest id.
    pub last: u32,
}

/// Why a tokenizer could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The weight file lacks a key, or the key has the wrong type.
    #[error("cannot read the tokenizer from the weight file: {0}")]
    Metadata(#[from] lapwing_kernels::weights::MetadataError),
    /// The file's tokenizer model is not supported.
    #[error(
        "tokenizer model `{model}` (tokenizer.ggml.model) is not supported (supported are gpt2, gemma4, llama, t5 and bert, and none for prompts of ids)"
    )]
    UnknownModel {
        /// Value of `tokenizer.ggml.model`.
        model: String,
    },
    /// The file's word rules are not supported.
    #[error(
        "word rules `{pre}` (tokenizer.ggml.pre) are not supported; supported are: {supported}"
    )]
    UnknownWordRules {
        /// Value of `tokenizer.ggml.pre`.
        pre: String,
        /// Every supported value.
        supported: String,
    },
    /// A model without a tokenizer has more tokens than any real one.
    #[error(
        "the vocabulary has {tokens} tokens, more than the {most} that are supported; the file is damaged"
    )]
    VocabularySize {
        /// Number of tokens that the file states.
        tokens: usize,
        /// Most tokens.
        most: usize,
    },
    /// The token list has no entries.
    #[error("the token list (tokenizer.ggml.tokens) is empty; the file has no vocabulary")]
    EmptyVocabulary,
    /// The ids do not fit in 32 bits.
    #[error("the token list has {tokens} entries, more than 32-bit ids can number")]
    TooManyTokens {
        /// Length of the list.
        tokens: usize,
    },
    /// A list is shorter than the token list.
    #[error("tokenizer.ggml.{list} has {length} entries for {tokens} tokens; the file is damaged")]
    ListTooShort {
        /// Last part of the list's key.
        list: &'static str,
        /// Entries in the list.
        length: usize,
        /// Number of tokens.
        tokens: usize,
    },
    /// Two tokens have the same text, so the id of that text is ambiguous.
    #[error("tokens {first} and {second} are both `{text}`; convert the model again")]
    DuplicateToken {
        /// The text.
        text: String,
        /// Id of the first.
        first: u32,
        /// Id of the second.
        second: u32,
    },
    /// BPE by ranks has no merges.
    #[error("tokenizer.ggml.merges is missing or empty; BPE needs it")]
    NoMerges,
    /// The merge table is invalid.
    #[error("cannot build the merge table: {source}")]
    Merges {
        /// The BPE model's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// WordPiece or Unigram lacks a token with a role.
    #[error("the vocabulary has no {role} token, which its texts need; convert the model again")]
    NoRole {
        /// The token's usual text.
        role: &'static str,
    },
    /// The tokens cannot be indexed.
    #[error("cannot build the index of word pieces: {source}")]
    WordPieces {
        /// The model's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A piece of Unigram is longer than in any real vocabulary.
    #[error(
        "piece {id} has {length} bytes, more than the {most} that are supported; the file is damaged"
    )]
    PieceTooLong {
        /// Its id.
        id: u32,
        /// Length of its text in bytes.
        length: usize,
        /// Longest supported length in bytes.
        most: usize,
    },
    /// The map of characters cannot be read.
    #[error("tokenizer.ggml.precompiled_charsmap is damaged: {what}; convert the model again")]
    CharMap {
        /// What is wrong.
        what: &'static str,
    },
    /// A special token is longer than in any real vocabulary.
    #[error(
        "special token {id} has {length} bytes, more than the {most} that are supported; the file is damaged"
    )]
    SpecialTokenTooLong {
        /// Its id.
        id: u32,
        /// Length of its text in bytes.
        length: usize,
        /// Longest supported length in bytes.
        most: usize,
    },
    /// The special tokens are longer together than in any real vocabulary.
    #[error(
        "the special tokens have {bytes} bytes, more than the {most} that are supported; the file is damaged"
    )]
    SpecialTokensTooLong {
        /// Length of all their texts in bytes.
        bytes: usize,
        /// Longest supported length in bytes.
        most: usize,
    },
    /// The special tokens have more different beginnings than in any real vocabulary.
    #[error(
        "the special tokens of {lengths} lengths have {states} different beginnings, more than the {most} that are supported; the file is damaged"
    )]
    SpecialTokensTooDifferent {
        /// Number of different beginnings.
        states: usize,
        /// Number of different lengths in bytes.
        lengths: usize,
        /// Most different beginnings supported with that many lengths.
        most: usize,
    },
    /// The search for special tokens cannot be built.
    #[error("cannot index the special tokens: {source}")]
    SpecialTokens {
        /// The search's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The search for special tokens cannot be started.
    #[error("cannot search for the special tokens: {source}")]
    SpecialSearch {
        /// The search's error.
        source: aho_corasick::MatchError,
    },
    /// A pattern of the word rules does not compile.
    #[error("a word pattern does not compile: {source}")]
    WordPattern {
        /// The pattern compiler's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
