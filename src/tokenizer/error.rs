//! Why a vocabulary cannot be used.

/// Why a tokenizer could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The weight file lacks a key, or has it in another type.
    #[error("the tokenizer cannot be read from the weight file: {0}")]
    Metadata(#[from] lapwing_kernels::weights::MetadataError),
    /// The file's tokenizer model is none of those implemented.
    #[error("tokenizer model `{model}` is not supported; use a file with `gpt2` or `llama`")]
    UnknownModel {
        /// Value of `tokenizer.ggml.model`.
        model: String,
    },
    /// The file's rules for cutting text into words are none of those implemented.
    #[error(
        "word rules `{pre}` (tokenizer.ggml.pre) are not supported; supported are: {supported}"
    )]
    UnknownWordRules {
        /// Value of `tokenizer.ggml.pre`.
        pre: String,
        /// Every supported value.
        supported: String,
    },
    /// The token list has no entries.
    #[error("the token list (tokenizer.ggml.tokens) is empty; the file has no vocabulary")]
    EmptyVocabulary,
    /// Ids would not fit in 32 bits.
    #[error("the token list has {tokens} entries, more than ids can number")]
    TooManyTokens {
        /// Length of the list.
        tokens: usize,
    },
    /// A list beside the tokens ends before they do.
    #[error("tokenizer.ggml.{list} has {length} entries for {tokens} tokens; the file is damaged")]
    ListTooShort {
        /// Last part of the list's key.
        list: &'static str,
        /// Entries in the list.
        length: usize,
        /// Number of tokens.
        tokens: usize,
    },
    /// Two tokens have the same text, so that text has no definite id.
    #[error("tokens {first} and {second} are both `{text}`; convert the model again")]
    DuplicateToken {
        /// The text.
        text: String,
        /// Id of the first.
        first: u32,
        /// Id of the second.
        second: u32,
    },
    /// Byte-level BPE without merges.
    #[error("tokenizer.ggml.merges is missing or empty; byte-level BPE cannot do without")]
    NoMerges,
    /// The merge table was refused.
    #[error("the merge table cannot be built: {source}")]
    Merges {
        /// What the BPE model says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The special tokens cannot be searched for.
    #[error("the special tokens cannot be indexed: {source}")]
    SpecialTokens {
        /// What the search says.
        source: aho_corasick::BuildError,
    },
    /// A pattern of the word rules does not compile.
    #[error("a word pattern does not compile: {source}")]
    WordPattern {
        /// What the pattern compiler says.
        source: Box<regex_automata::meta::BuildError>,
    },
}
