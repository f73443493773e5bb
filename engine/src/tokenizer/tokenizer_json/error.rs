//! What a vocabulary has that the `tokenizers` library cannot compute.

/// Why a vocabulary cannot be written as `tokenizer.json`: a file that gives other ids is not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Inexpressible {
    /// The model reads ids.
    #[error("the model has no tokenizer (tokenizer.ggml.model is none): its prompts are ids")]
    NoTokenizer,
    /// Unknown text is written byte by byte, and some bytes are not tokens.
    #[error(
        "the vocabulary has no token for the byte {byte:#04X}: unknown text becomes one unknown token for each of its bytes, \
         which tokenizer.json cannot say"
    )]
    NoByte {
        /// The first such byte.
        byte: u8,
    },
    /// Pieces are joined from a character that is not a token.
    #[error(
        "the piece `{piece}` is joined from `{char}`, which is not a token itself; tokenizer.json can only join tokens"
    )]
    NoChar {
        /// The piece.
        piece: String,
        /// The character.
        char: String,
    },
    /// Pieces of the same score compete.
    #[error(
        "the pieces `{first}` and `{second}` have the same score, and of those that overlap in a text the left one is joined \
         first, which tokenizer.json cannot say"
    )]
    Ties {
        /// A piece.
        first: String,
        /// Another, or the same.
        second: String,
    },
    /// Special tokens may overlap.
    #[error(transparent)]
    Overlap(Overlap),
    /// A map of characters normalises text.
    #[error(
        "the vocabulary has a map of characters (tokenizer.ggml.precompiled_charsmap): SentencePiece replaces the longest text of the \
         map, and by tokenizer.json whole characters with their marks, of which it loses some"
    )]
    CharMap,
    /// A word of line feeds is a token that no merges make.
    #[error(
        "the token {id} of {count} line feeds is taken whole, which its merges do not make and tokenizer.json cannot say"
    )]
    LineFeeds {
        /// Its id.
        id: u32,
        /// Number of line feeds.
        count: usize,
    },
    /// Two tokens are spelled alike.
    #[error("the tokens {first} and {second} are both spelled `{text}` in tokenizer.json")]
    SameSpelling {
        /// The text.
        text: String,
        /// Id of the first.
        first: u32,
        /// Id of the second.
        second: u32,
    },
    /// A special token is spelled in another way than it is written.
    #[error(
        "the special token `{text}` is a piece of another spelling, which tokenizer.json cannot say"
    )]
    Respelled {
        /// The text.
        text: String,
    },
    /// The file has no unknown token.
    #[error(
        "the vocabulary has no unknown token, which tokenizer.json needs for this tokenizer model"
    )]
    NoUnknown,
    /// The JSON cannot be written.
    #[error("cannot write tokenizer.json: {source}")]
    Json {
        /// The writer's error.
        source: serde_json::Error,
    },
}

/// Two special tokens of which a text may have the second, which is longer, from inside of the first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "where the special tokens `{first}` and `{second}` overlap in a text, the longer one is taken, and by tokenizer.json the left one"
)]
#[non_exhaustive]
pub struct Overlap {
    /// The one that starts first.
    pub first: String,
    /// The one that is longer.
    pub second: String,
}
