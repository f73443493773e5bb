//! Limits of what the special tokens of a file may cost. No known vocabulary comes near them.

use std::collections::BTreeSet;

use crate::tokenizer::error::TokenizerError;

/// Longest text of a special token, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 4096;

/// Longest texts of all special tokens together, in bytes.
const ALL_BYTES_MAX: usize = 4 << 20;

/// Most different beginnings of special tokens: the states of a search, which take about a microsecond
/// each to build.
const STATES_MAX: usize = 1 << 19;

/// Most entries of the lists of tokens that end in a state, 12 bytes each. A state has at most one for
/// each length of a token.
const ENTRIES_MAX: usize = 1 << 23;

/// Checks the texts of all special tokens, with their ids.
pub(super) fn check<'a>(texts: impl Iterator<Item = (u32, &'a str)>) -> Result<(), TokenizerError> {
    let mut sorted = Vec::new();
    let mut bytes = 0;
    for (id, text) in texts {
        let length = text.len();
        if length > TEXT_BYTES_MAX {
            return Err(TokenizerError::SpecialTokenTooLong { id, length, most: TEXT_BYTES_MAX });
        }
        bytes += length;
        sorted.push(text);
    }
    if bytes > ALL_BYTES_MAX {
        return Err(TokenizerError::SpecialTokensTooLong { bytes, most: ALL_BYTES_MAX });
    }
    sorted.sort_unstable();
    let mut before = "";
    let mut states = 0;
    for text in &sorted {
        states += text.len() - common_beginning(before, text);
        before = text;
    }
    let lengths = sorted.iter().map(|text| text.len()).collect::<BTreeSet<_>>().len();
    let most = STATES_MAX.min(ENTRIES_MAX / lengths.max(1));
    if states > most {
        return Err(TokenizerError::SpecialTokensTooDifferent { states, lengths, most });
    }
    Ok(())
}

/// Length in bytes of the common beginning.
fn common_beginning(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}
