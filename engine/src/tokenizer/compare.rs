//! Comparison of two vocabularies.

use super::Tokenizer;

/// Two models have different tokens for an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the vocabularies differ: token {id} is {here} in one model and {there} in the other; a draft model needs \
     the target's vocabulary"
)]
pub struct VocabularyDifference {
    /// The first id whose tokens differ.
    pub id: u32,
    /// The token of the one model, quoted.
    pub here: String,
    /// The token of the other model, quoted.
    pub there: String,
}

/// Ids by which vocabularies may differ in size: files pad them to multiples of 64 or 128 with tokens that
/// do not occur.
const PADDING_MAX: usize = 512;

impl Tokenizer {
    /// Checks that every id stands for the same token in both vocabularies. One of them may have a few more
    /// tokens at its end.
    ///
    /// # Errors
    /// [`VocabularyDifference`] names the first id whose tokens differ.
    pub fn check_same_vocabulary(&self, other: &Tokenizer) -> Result<(), VocabularyDifference> {
        let sizes = (self.vocab_size(), other.vocab_size());
        let both = sizes.0.min(sizes.1);
        let differs = |id: &usize| {
            let id = *id as u32;
            self.token_text(id) != other.token_text(id)
                || self.is_control(id) != other.is_control(id)
        };
        let first = (0..both).find(differs);
        let first = first.or_else(|| (sizes.0.abs_diff(sizes.1) > PADDING_MAX).then_some(both));
        let Some(id) = first.map(|id| id as u32) else { return Ok(()) };
        let quoted =
            |text: Option<&str>| text.map_or("absent".to_owned(), |text| format!("{text:?}"));
        let (here, there) = (quoted(self.token_text(id)), quoted(other.token_text(id)));
        Err(VocabularyDifference { id, here, there })
    }
}
