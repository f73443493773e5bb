//! Special tokens, which are cut out of a text before all else.

use serde::Serialize;

use super::error::Inexpressible;
use super::overlap;
use crate::tokenizer::{Method, Tokenizer};

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
    /// Whether it is found in normalised text, after all others.
    pub(crate) normalized: bool,
    /// Whether it is left out of visible text.
    pub(crate) special: bool,
}

impl Tokenizer {
    /// The tokens that are matched before any other rule, in the order of their ids.
    ///
    /// # Errors
    /// [`Inexpressible::Overlap`] if the `tokenizers` library would match other ones.
    pub(crate) fn added_tokens(&self) -> Result<Vec<AddedToken<'_>>, Inexpressible> {
        let table = &self.inner.table;
        let ids = (0..table.len()).filter(|id| table.traits(*id).is_special());
        let texts: Vec<&str> = ids.clone().map(|id| table.text(id)).collect();
        // Only BPE over bytes does not normalise text.
        let has_passes = matches!(self.inner.method, Method::BytePairs(_));
        let later = overlap::taken_later(&texts, has_passes)?;
        let token = |at: usize, id: u32| {
            let traits = table.traits(id);
            AddedToken {
                id,
                content: table.text(id),
                single_word: false,
                lstrip: traits.strip_left,
                rstrip: traits.strip_right,
                normalized: later.contains(&at),
                special: traits.is_hidden(),
            }
        };
        Ok(ids.enumerate().map(|numbered| token(numbered.0, numbered.1)).collect())
    }
}
