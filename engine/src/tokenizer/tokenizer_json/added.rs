//! Special tokens, which are cut out of a text before all else.

use serde::Serialize;

use crate::tokenizer::Tokenizer;

/// A special token, as `tokenizer.json` and `tokenizer_config.json` describe it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct AddedToken<'a> {
    pub(crate) id: u32,
    pub(crate) content: &'a str,
    pub(crate) single_word: bool,
    /// Whether it absorbs white space to its left.
    pub(crate) lstrip: bool,
    /// Whether it absorbs white space to its right.
    pub(crate) rstrip: bool,
    /// Whether it is found in normalised text.
    pub(crate) normalized: bool,
    /// Whether it is left out of visible text.
    pub(crate) special: bool,
}

impl Tokenizer {
    /// The tokens that are matched before any other rule, in the order of their ids.
    pub(crate) fn added_tokens(&self) -> Vec<AddedToken<'_>> {
        let table = &self.inner.table;
        let token = |id: u32| {
            let traits = table.traits(id);
            AddedToken {
                id,
                content: table.text(id),
                single_word: false,
                lstrip: traits.strip_left,
                rstrip: traits.strip_right,
                normalized: false,
                special: traits.is_hidden(),
            }
        };
        (0..table.len()).filter(|id| table.traits(*id).is_special()).map(token).collect()
    }
}
