//! The tokens: text, traits and score, and the lookup from text to id.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::byte_alphabet;
use super::error::TokenizerError;
use super::vocabulary::{TokenKind, Vocabulary};

/// Properties of a token; several can hold at once, because some follow from the text alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traits {
    pub(super) normal: bool,
    pub(super) unknown: bool,
    pub(super) control: bool,
    pub(super) user_defined: bool,
    pub(super) byte: bool,
    /// It absorbs white space to its left.
    pub(super) strip_left: bool,
    /// It absorbs white space to its right.
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

    /// Traits of a token that is only user-defined.
    pub(super) fn user_defined() -> Self {
        Self::new(TokenKind::UserDefined)
    }

    /// Traits of a token that is ordinary text.
    pub(super) fn normal() -> Self {
        Self::new(TokenKind::Normal)
    }

    /// Whether it is matched in text before word rules apply.
    pub(super) fn is_special(self) -> bool {
        self.is_hidden() || self.user_defined
    }

    /// Whether it is hidden from the visible text.
    pub(super) fn is_hidden(self) -> bool {
        self.control || self.unknown
    }
}

/// All tokens of one vocabulary; the ids it returns are valid.
pub(super) struct TokenTable {
    /// All texts, concatenated: a vocabulary may have several hundred thousand.
    texts: String,
    /// End of each text.
    ends: Vec<usize>,
    traits: Vec<Traits>,
    scores: Vec<f32>,
    /// Id of each text.
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Length in bytes of the longest token; longer text is not a token.
    text_len_max: usize,
    /// Token of each byte, spelled `<0xNN>` or as the byte itself.
    byte_ids: [Option<u32>; 256],
}

impl TokenTable {
    /// Indexes a checked vocabulary.
    pub(super) fn new(vocabulary: &Vocabulary) -> Result<Self, TokenizerError> {
        let tokens = vocabulary.tokens.len();
        let kind = |id| vocabulary.kinds.get(id).copied().unwrap_or(TokenKind::Normal);
        let mut table = Self {
            texts: String::with_capacity(vocabulary.tokens.iter().map(String::len).sum()),
            ends: Vec::with_capacity(tokens),
            traits: (0..tokens).map(|id| Traits::new(kind(id))).collect(),
            scores: vocabulary.scores.clone(),
            ids: HashTable::with_capacity(tokens),
            hasher: DefaultHashBuilder::default(),
            text_len_max: vocabulary.tokens.iter().map(String::len).max().unwrap_or(0),
            byte_ids: [None; 256],
        };
        for (id, text) in (0_u32..).zip(&vocabulary.tokens) {
            if let Some(first) = table.id(text) {
                let text = text.clone();
                return Err(TokenizerError::DuplicateToken { text, first, second: id });
            }
            table.texts.push_str(text);
            table.ends.push(table.texts.len());
            let Self { texts, ends, ids, hasher, .. } = &mut table;
            let hash = |id: &u32| hasher.hash_one(text_of(texts, ends, *id));
            ids.insert_unique(hasher.hash_one(text.as_str()), id, hash);
        }
        for byte in 0..=u8::MAX {
            let own_text = char::from(byte).is_ascii().then(|| char::from(byte).to_string());
            let by_text = || table.id(own_text.as_deref()?);
            let id = table.id(&format!("<0x{byte:02X}>")).or_else(by_text);
            table.byte_ids[usize::from(byte)] = id;
        }
        Ok(table)
    }

    /// Number of tokens; every id is below it.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.ends.len()).unwrap_or(u32::MAX)
    }

    /// Id of the token with exactly this text.
    pub(super) fn id(&self, text: &str) -> Option<u32> {
        if text.len() > self.text_len_max {
            return None;
        }
        let same = |id: &u32| self.text(*id) == text;
        self.ids.find(self.hasher.hash_one(text), same).copied()
    }

    /// Length in bytes of the longest token, as the vocabulary spells it.
    pub(super) fn text_len_max(&self) -> usize {
        self.text_len_max
    }

    /// Id of the token that represents one raw byte.
    pub(super) fn byte_id(&self, byte: u8) -> Option<u32> {
        self.byte_ids[usize::from(byte)]
    }

    /// Makes `id` the token of every byte that has none of its own.
    pub(super) fn set_byte_default(&mut self, id: Option<u32>) {
        self.byte_ids.iter_mut().for_each(|byte_id| *byte_id = byte_id.or(id));
    }

    /// The text as the vocabulary spells it; empty for ids out of range.
    pub(super) fn text(&self, id: u32) -> &str {
        text_of(&self.texts, &self.ends, id)
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

    /// The score; zero if the vocabulary states none.
    pub(super) fn score(&self, id: u32) -> f32 {
        self.scores.get(id as usize).copied().unwrap_or(0.0)
    }

    /// The raw byte that a byte token represents.
    pub(super) fn byte(&self, id: u32) -> Option<u8> {
        let digits = self.text(id).strip_prefix("<0x")?.strip_suffix('>')?;
        u8::from_str_radix(digits, 16).ok()
    }

    /// The bytes of a token of byte-level BPE.
    pub(super) fn byte_level_bytes(&self, id: u32) -> Vec<u8> {
        byte_alphabet::read(self.text(id))
    }
}

/// The text of a token; empty for ids out of range.
fn text_of<'a>(texts: &'a str, ends: &[usize], id: u32) -> &'a str {
    let before = (id as usize).checked_sub(1);
    let start = before.map_or(Some(0), |before| ends.get(before).copied());
    match (start, ends.get(id as usize)) {
        (Some(start), Some(end)) => &texts[start..*end],
        _ => "",
    }
}
