//! Converts token ids to text in a stream, never splitting a character.

use super::{Special, Tokenizer};

/// Converts ids to text as they arrive. Bytes of an incomplete character wait for the next id;
/// each invalid byte sequence becomes one U+FFFD.
#[derive(Debug)]
pub struct Detokenizer {
    tokenizer: Tokenizer,
    show_control: bool,
    /// Control tokens that are written as text although others are left out.
    shown: Vec<u32>,
    /// Whether no space is one that was added by encoding.
    keep_spaces: bool,
    /// Whether a space at the start of the next piece was added by encoding.
    drop_space: bool,
    /// Bytes of an incomplete character: at most three.
    pending: Vec<u8>,
}

impl Detokenizer {
    /// Text that continues `before`; if that is empty, text from the start.
    pub(super) fn new(tokenizer: Tokenizer, before: &[u32]) -> Self {
        let after_control = before.last().is_none_or(|id| tokenizer.is_special(*id));
        let drop_space = tokenizer.adds_space_prefix() && after_control;
        Self {
            tokenizer,
            show_control: false,
            shown: Vec::new(),
            keep_spaces: false,
            drop_space,
            pending: Vec::new(),
        }
    }

    /// Writes control tokens as text instead of leaving them out.
    #[must_use]
    pub fn showing_control(mut self) -> Self {
        self.show_control = true;
        self
    }

    /// Writes these control tokens as text, named by their spelling or by a text that has them.
    #[must_use]
    pub(crate) fn showing(mut self, tokens: &[String]) -> Self {
        let tokenizer = &self.tokenizer;
        let ids = |text: &String| match tokenizer.token_id(text) {
            Some(id) => vec![id],
            None => tokenizer.encode(text, Special::Parse, false),
        };
        let ids = tokens.iter().flat_map(ids);
        self.shown = ids.filter(|id| tokenizer.is_control(*id)).collect();
        self
    }

    /// Keeps every space: the text is exactly that of the tokens.
    #[cfg(feature = "structured")]
    #[must_use]
    pub(crate) fn keeping_spaces(self) -> Self {
        Self { keep_spaces: true, ..self }
    }

    /// Takes the next id and returns the text that is certain so far, often a word, possibly empty.
    /// Ids out of range add nothing.
    pub fn push(&mut self, id: u32) -> String {
        if self.tokenizer.is_special(id) {
            self.drop_space = self.tokenizer.adds_space_prefix();
            let is_shown = self.show_control || self.shown.contains(&id);
            if self.tokenizer.is_control(id) && !is_shown {
                return String::new();
            }
            let bytes = self.tokenizer.token_bytes(id).unwrap_or_default().into_owned();
            return self.take(&bytes);
        }
        let bytes = self.tokenizer.token_bytes(id).unwrap_or_default().into_owned();
        let text = match bytes.strip_prefix(b" ") {
            Some(rest) if self.drop_space && !self.keep_spaces => self.take(rest),
            _ => self.take(&bytes),
        };
        self.drop_space &= bytes.is_empty();
        text
    }

    /// Whether `id` ends a generation.
    pub(crate) fn is_end(&self, id: u32) -> bool {
        self.tokenizer.is_end(id)
    }

    /// Ends the text: pending bytes become U+FFFD.
    pub fn finish(mut self) -> String {
        let pending = std::mem::take(&mut self.pending);
        String::from_utf8_lossy(&pending).into_owned()
    }

    /// Adds bytes and removes everything but an incomplete character at the end.
    fn take(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.pending.len());
        let mut unfinished = 0;
        let mut chunks = self.pending.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            if chunk.invalid().is_empty() {
                continue;
            }
            if chunks.peek().is_none() && can_be_completed(chunk.invalid()) {
                unfinished = chunk.invalid().len();
            } else {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.pending.drain(..self.pending.len() - unfinished);
        text
    }
}

/// Whether these bytes, which are not a character, are the beginning of one.
fn can_be_completed(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
