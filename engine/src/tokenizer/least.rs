//! The number of tokens that a text has at least, without encoding it.

use super::{Method, Tokenizer, word_pieces};

impl Tokenizer {
    /// A number of tokens that `text` has at least, computed from its bytes alone. Bytes that the vocabulary
    /// cannot express, and white space that a token may absorb, do not count.
    pub(crate) fn tokens_at_least(&self, text: &str) -> usize {
        let inner = &*self.inner;
        if let Method::WordPieces(_) = inner.method {
            // A token that the model's author added may stand for several words.
            let words = word_pieces::words_at_least(text);
            let joins = inner.specials.any_plain();
            return if joins { words.div_ceil(inner.table.text_len_max().max(1)) } else { words };
        }
        if let Method::Ids = inner.method {
            return text.split_whitespace().count();
        }
        if let Method::Unigram(unigram) = &inner.method {
            return unigram.tokens_at_least(&inner.table, text);
        }
        let is_expressed = |byte: u8| match &inner.method {
            Method::BytePairs(pairs) => pairs.has_byte(byte),
            // A byte without a token becomes the unknown token.
            _ => inner.table.byte_id(byte).is_some(),
        };
        let counts: [bool; 256] = std::array::from_fn(|byte| is_expressed(byte as u8));
        let counted = |text: &str| text.bytes().filter(|byte| counts[usize::from(*byte)]).count();
        let bytes = match inner.specials.any_strips() {
            true => text.split_whitespace().map(counted).sum(),
            false => counted(text),
        };
        // A token stands for at most as many bytes as its own text has.
        bytes.div_ceil(inner.table.text_len_max().max(1))
    }
}
