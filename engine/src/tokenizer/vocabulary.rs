//! The input of a tokenizer: the token list and its flags, as stored in a weight file.

use super::error::TokenizerError;

/// Kind of a token, as stored in `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenKind {
    /// Ordinary text.
    Normal,
    /// Represents text that the vocabulary cannot express.
    Unknown,
    /// Controls the model (start, end, turn markers); matched in text only on request.
    Control,
    /// Added by the model's author; always matched before anything else.
    UserDefined,
    /// Present but never produced.
    Unused,
    /// One raw byte, written `<0xNN>`.
    Byte,
    /// Any other value.
    Undefined,
}

impl TokenKind {
    /// The kind for the number stored in weight files; unknown numbers are
    /// [`TokenKind::Undefined`].
    pub fn from_number(number: i32) -> Self {
        match number {
            1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => Self::Undefined,
        }
    }
}

/// The input of a [`Tokenizer`](super::Tokenizer), one field per metadata key.
///
/// Optional fields are `None` when the file does not state them; the tokenizer then applies
/// the defaults of its model and pre-tokenizer.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    /// `tokenizer.ggml.model`: `gpt2` (BPE on bytes, or on pieces with some word rules), `gemma4` (BPE on pieces), `llama`
    /// (SentencePiece BPE), `t5` (Unigram), `bert` (WordPiece) or `none`, whose tokens are written as their ids.
    pub model: String,
    /// `tokenizer.ggml.pre`: name of the rules that split text into words before BPE.
    pub pre: Option<String>,
    /// `general.name`: the only place where some models say how special tokens treat white space.
    pub name: Option<String>,
    /// `general.architecture`: where others say it.
    pub architecture: Option<String>,
    /// `tokenizer.ggml.tokens`: text of each token; the index is the id.
    pub tokens: Vec<String>,
    /// `tokenizer.ggml.token_type`: one per token, or empty when all are normal.
    pub kinds: Vec<TokenKind>,
    /// `tokenizer.ggml.scores`: one per token, or empty when all are zero.
    pub scores: Vec<f32>,
    /// `tokenizer.ggml.merges`: `left right` pairs, best first; needed by `gpt2` and `gemma4` only.
    pub merges: Vec<String>,
    /// Ids of the tokens with a role in the protocol between model and runtime.
    pub roles: RoleIds,
    /// `tokenizer.ggml.add_bos_token`.
    pub add_bos: Option<bool>,
    /// `tokenizer.ggml.add_eos_token`.
    pub add_eos: Option<bool>,
    /// `tokenizer.ggml.add_sep_token`: whether a separator stands between two texts, beside the end of the first.
    pub add_sep: Option<bool>,
    /// `tokenizer.ggml.add_space_prefix`.
    pub add_space_prefix: Option<bool>,
    /// `tokenizer.ggml.remove_extra_whitespaces`: spaces count once; read by `t5` only, whose default is `false`.
    pub remove_extra_whitespaces: Option<bool>,
    /// `tokenizer.ggml.precompiled_charsmap`: the texts that the normaliser of SentencePiece replaces, in its form; read by `t5`
    /// only.
    pub char_map: Vec<u8>,
    /// `tokenizer.ggml.normalizer.lowercase`; read by `bert` only, whose default is `true`.
    pub lowercase: Option<bool>,
    /// `tokenizer.ggml.normalizer.strip_accents`; read by `bert` only, whose default is as `lowercase`.
    pub strip_accents: Option<bool>,
}

/// Ids that the weight file states by key (`tokenizer.ggml.bos_token_id` and so on).
#[derive(Clone, Copy, Debug, Default)]
pub struct RoleIds {
    /// Beginning of text.
    pub bos: Option<u32>,
    /// End of text.
    pub eos: Option<u32>,
    /// End of turn.
    pub eot: Option<u32>,
    /// End of message.
    pub eom: Option<u32>,
    /// Unknown text.
    pub unk: Option<u32>,
    /// Begin of text in vocabularies of BERT; `bos` takes precedence.
    pub class: Option<u32>,
    /// End of text in vocabularies of BERT.
    pub separator: Option<u32>,
    /// Start of the text before a gap to be filled.
    pub fim_prefix: Option<u32>,
    /// Start of the text after a gap to be filled.
    pub fim_suffix: Option<u32>,
    /// Start of the text that fills the gap.
    pub fim_middle: Option<u32>,
    /// Padding for gap filling.
    pub fim_pad: Option<u32>,
    /// Name of a repository in gap filling.
    pub fim_repository: Option<u32>,
    /// Border between files in gap filling.
    pub fim_separator: Option<u32>,
}

impl Vocabulary {
    /// Checks that the lists match each other, and gives empty tokens unique names.
    pub(super) fn checked(mut self) -> Result<Self, TokenizerError> {
        let tokens = self.tokens.len();
        if tokens == 0 {
            return Err(TokenizerError::EmptyVocabulary);
        }
        if u32::try_from(tokens).is_err() {
            return Err(TokenizerError::TooManyTokens { tokens });
        }
        for (list, length) in [("token_type", self.kinds.len()), ("scores", self.scores.len())] {
            if length != 0 && length < tokens {
                return Err(TokenizerError::ListTooShort { list, length, tokens });
            }
        }
        for (id, text) in self.tokens.iter_mut().enumerate() {
            if text.is_empty() {
                *text = format!("[EMPTY_{id}]");
            }
        }
        Ok(self)
    }
}
