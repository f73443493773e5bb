//! The tokens themselves: text, traits, score, and the way back from text to id.

use std::collections::HashMap;

use super::vocabulary::{TokenKind, Vocabulary};
use super::{TokenizerError, byte_alphabet};

/// What a token is; several can hold at once, because some are known by their text only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traits {
    pub(super) normal: bool,
    pub(super) unknown: bool,
    pub(super) control: bool,
    pub(super) user_defined: bool,
    pub(super) byte: bool,
    /// White space left of the token belongs to it.
    pub(super) strip_left: bool,
    /// White space right of the token belongs to it.
    pub(super) strip_right: bool,
}

impl Traits {
    fn new(kind: TokenKind) -> Self {
        Self {
            normal: kind == TokenKind::Normal,
            unknown: kind == TokenKind::Unknown,
            control: kind == TokenKind::Control,
            user_defined: kind == TokenKind::UserDefined,
            byte: kind == TokenKind::Byte,
            ..Self::default()
        }
    }

    /// Traits of a token that is user-defined and nothing else.
    pub(super) fn user_defined() -> Self {
        Self::new(TokenKind::UserDefined)
    }

    /// Traits of a token that is ordinary text and nothing else.
    pub(super) fn normal() -> Self {
        Self::new(TokenKind::Normal)
    }

    /// Matched in text as it stands.
    pub(super) fn is_special(self) -> bool {
        self.is_hidden() || self.user_defined
    }

    /// Not part of the text a reader sees.
    pub(super) fn is_hidden(self) -> bool {
        self.control || self.unknown
    }
}

/// All tokens of one vocabulary. Ids handed out by it are valid in it.
pub(super) struct TokenTable {
    texts: Vec<String>,
    traits: Vec<Traits>,
    scores: Vec<f32>,
    ids: HashMap<String, u32>,
    /// Length in bytes of the longest token: longer text is no token.
    text_len_max: usize,
    /// Token of each byte, by `<0xNN>` or by the byte itself as text.
    byte_ids: [Option<u32>; 256],
}

impl TokenTable {
    /// Indexes a checked vocabulary.
    pub(super) fn new(vocabulary: &Vocabulary) -> Result<Self, TokenizerError> {
        let tokens = vocabulary.tokens.len();
        let mut ids = HashMap::with_capacity(tokens);
        for (id, text) in (0_u32..).zip(&vocabulary.tokens) {
            if let Some(first) = ids.insert(text.clone(), id) {
                let text = text.clone();
                return Err(TokenizerError::DuplicateToken { text, first, second: id });
            }
        }
        let kind = |id| vocabulary.kinds.get(id).copied().unwrap_or(TokenKind::Normal);
        let mut byte_ids = [None; 256];
        for (byte, id) in (0..=u8::MAX).zip(&mut byte_ids) {
            let own_text = char::from(byte).is_ascii().then(|| char::from(byte).to_string());
            let by_text = || ids.get(own_text.as_deref()?).copied();
            *id = ids.get(&format!("<0x{byte:02X}>")).copied().or_else(by_text);
        }
        Ok(Self {
            traits: (0..tokens).map(|id| Traits::new(kind(id))).collect(),
            scores: vocabulary.scores.clone(),
            text_len_max: vocabulary.tokens.iter().map(String::len).max().unwrap_or(0),
            texts: vocabulary.tokens.clone(),
            ids,
            byte_ids,
        })
    }

    /// Number of tokens; every id is below it.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.texts.len()).unwrap_or(u32::MAX)
    }

    /// Id of the token with exactly this text.
    pub(super) fn id(&self, text: &str) -> Option<u32> {
        if text.len() > self.text_len_max {
            return None;
        }
        self.ids.get(text).copied()
    }

    /// Id of the token that stands for one raw byte.
    pub(super) fn byte_id(&self, byte: u8) -> Option<u32> {
        self.byte_ids[usize::from(byte)]
    }

    /// Lets `id` stand for every byte that has no token of its own.
    pub(super) fn set_byte_default(&mut self, id: Option<u32>) {
        self.byte_ids.iter_mut().for_each(|byte_id| *byte_id = byte_id.or(id));
    }

    /// The text as the vocabulary writes it; empty for ids out of range.
    pub(super) fn text(&self, id: u32) -> &str {
        self.texts.get(id as usize).map_or("", String::as_str)
    }

    /// The traits; none for ids out of range.
    pub(super) fn traits(&self, id: u32) -> Traits {
        self.traits.get(id as usize).copied().unwrap_or_default()
    }

    /// Changes the traits of one token; ids out of range change nothing.
    pub(super) fn change(&mut self, id: u32, change: impl FnOnce(&mut Traits)) {
        if let Some(traits) = self.traits.get_mut(id as usize) {
            change(traits);
        }
    }

    /// The score, zero if the vocabulary states none.
    pub(super) fn score(&self, id: u32) -> f32 {
        self.scores.get(id as usize).copied().unwrap_or(0.0)
    }

    /// The raw byte a byte token stands for.
    pub(super) fn byte(&self, id: u32) -> Option<u8> {
        let digits = self.text(id).strip_prefix("<0x")?.strip_suffix('>')?;
        u8::from_str_radix(digits, 16).ok()
    }

    /// The bytes of a token of byte-level BPE.
    pub(super) fn byte_level_bytes(&self, id: u32) -> Vec<u8> {
        byte_alphabet::read(self.text(id))
    }
}
