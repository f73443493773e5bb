//! Special tokens that may overlap in a text: the longest is taken first, wherever it stands, while the `tokenizers` library
//! takes the one that starts first.

use std::collections::HashMap;

use super::added::AddedToken;
use super::error::{Inexpressible, Overlap};

/// The first two tokens of which a text may have the second, which is longer, from inside of the first. Only texts with broken
/// control tokens have two of these that overlap.
///
/// # Errors
/// [`Inexpressible::Overlap`] if one of them is no control token: ordinary texts may have it.
pub(super) fn find(tokens: &[AddedToken<'_>]) -> Result<Option<Overlap>, Inexpressible> {
    let mut by_beginning: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, token) in tokens.iter().enumerate() {
        for border in borders(token.content) {
            by_beginning.entry(&token.content[..border]).or_default().push(at);
        }
    }
    let mut found = None;
    for first in tokens {
        for border in borders(first.content) {
            let (begin, end) = first.content.split_at(border);
            for second in by_beginning.get(end).into_iter().flatten().map(|at| &tokens[*at]) {
                let joined = format!("{begin}{}", second.content);
                let is_longer = second.content.len() > first.content.len();
                if !is_longer || starts_with_longer(&joined, first.content, tokens) {
                    continue;
                }
                let texts = [first.content, second.content].map(str::to_owned);
                let [first_text, second_text] = texts;
                let overlap = Overlap { first: first_text, second: second_text };
                if !(first.special && second.special) {
                    return Err(Inexpressible::Overlap(overlap));
                }
                found.get_or_insert(overlap);
            }
        }
    }
    Ok(found)
}

/// Positions inside a text between its characters.
fn borders(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().skip(1).map(|(at, _)| at)
}

/// Whether `text` starts with a token longer than `first`, which both rules take there.
fn starts_with_longer(text: &str, first: &str, tokens: &[AddedToken<'_>]) -> bool {
    tokens.iter().any(|other| other.content.len() > first.len() && text.starts_with(other.content))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str], special: bool) -> Result<Option<Overlap>, Inexpressible> {
        let token = |content| AddedToken {
            id: 0,
            content,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
            special,
        };
        find(&texts.iter().map(|text| token(*text)).collect::<Vec<_>>())
    }

    #[test]
    fn runs_and_beginnings_may_share_characters() {
        let texts = ["<s>", "</s>", "<s>x", "  ", "   ", "    ", "\n", "\n\n"];
        assert_eq!(found(&texts, false).expect("none"), None);
        // Of two tokens of one length both rules take the left one.
        assert_eq!(found(&["ab", "bc"], false).expect("none"), None);
    }

    #[test]
    fn a_longer_token_that_starts_inside_a_shorter_one_is_refused_or_named() {
        let texts = [">>A<<", "<|end|>"];
        let error = found(&texts, false).expect_err("an overlap").to_string();
        assert!(error.contains("`>>A<<`") && error.contains("`<|end|>`"), "{error}");
        let named = found(&texts, true).expect("control tokens").expect("an overlap");
        assert_eq!((&*named.first, &*named.second), (">>A<<", "<|end|>"));
    }
}
