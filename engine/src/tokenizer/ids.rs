//! Vocabularies without a tokenizer: a text is the ids of its tokens, with white space between them.

use lapwing_kernels::weights::Metadata;

use super::error::{NotAnId, TokenizerError};

/// Most tokens of such a vocabulary.
const MOST: usize = 1 << 22;

/// Whether a tokenizer model is none: files without a vocabulary, and those of llama.cpp's tests.
pub(super) fn is_model(model: &str) -> bool {
    matches!(model, "none" | "no_vocab" | "test")
}

/// The text of each token.
///
/// # Errors
/// If the file does not say how many there are, or has more than [`MOST`].
pub(super) fn tokens(metadata: &Metadata) -> Result<Vec<String>, TokenizerError> {
    let count = match metadata.opt_strings("tokenizer.ggml.tokens")? {
        Some(tokens) => tokens.len(),
        None => {
            let arch = metadata.str("general.architecture")?;
            metadata.u32(&format!("{arch}.vocab_size"))? as usize
        }
    };
    if count > MOST {
        return Err(TokenizerError::VocabularySize { tokens: count, most: MOST });
    }
    Ok((0..count).map(|id| format!(" {id}")).collect())
}

/// Appends the ids of a text, as far as its words are ids below `tokens`.
pub(super) fn encode(text: &str, tokens: u32, ids: &mut Vec<u32>) {
    ids.extend(text.split_whitespace().filter_map(|word| id(word, tokens)));
}

/// Checks that the words of a text are ids below `tokens`.
///
/// # Errors
/// [`NotAnId`] of the first that is not.
pub(super) fn check(text: &str, tokens: u32) -> Result<(), NotAnId> {
    match text.split_whitespace().find(|word| id(word, tokens).is_none()) {
        Some(word) => {
            let word = word.chars().take(40).collect();
            Err(NotAnId { word, last: tokens.saturating_sub(1) })
        }
        None => Ok(()),
    }
}

fn id(word: &str, tokens: u32) -> Option<u32> {
    word.parse().ok().filter(|id| *id < tokens)
}
