//! Special tokens that may overlap in a text: the longest is taken first, wherever it stands, while the `tokenizers` library
//! takes the one that starts first.

use std::collections::HashMap;

use super::added::AddedToken;
use super::error::Inexpressible;

/// Checks that both rules take the same tokens.
///
/// # Errors
/// [`Inexpressible::Overlap`] of two tokens of which a text takes different ones.
pub(super) fn check(tokens: &[AddedToken<'_>]) -> Result<(), Inexpressible> {
    let mut by_beginning: HashMap<&str, Vec<&str>> = HashMap::new();
    for token in tokens {
        for beginning in proper(token.content).map(|at| &token.content[..at]) {
            by_beginning.entry(beginning).or_default().push(token.content);
        }
    }
    let texts: Vec<&str> = tokens.iter().map(|token| token.content).collect();
    for first in &texts {
        for at in proper(first) {
            let end = &first[at..];
            for second in by_beginning.get(end).into_iter().flatten() {
                let joined = format!("{}{second}", &first[..at]);
                if second.len() > first.len()
                    && starts_with_longer(&joined, first, &texts).is_none()
                {
                    return Err(Inexpressible::Overlap {
                        first: (*first).to_owned(),
                        second: (*second).to_owned(),
                    });
                }
            }
        }
    }
    Ok(())
}

/// Positions inside a text between its characters.
fn proper(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().skip(1).map(|(at, _)| at)
}

/// A token longer than `first` that `text` starts with, which both rules take there.
fn starts_with_longer<'a>(text: &str, first: &str, texts: &[&'a str]) -> Option<&'a str> {
    texts.iter().copied().find(|other| other.len() > first.len() && text.starts_with(*other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(texts: &[&str]) -> Result<(), Inexpressible> {
        let token = |content| AddedToken {
            id: 0,
            content,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
            special: true,
        };
        check(&texts.iter().map(|text| token(*text)).collect::<Vec<_>>())
    }

    #[test]
    fn runs_and_beginnings_may_share_characters() {
        checked(&["<s>", "</s>", "<s>x", "  ", "   ", "    ", "\n", "\n\n"]).expect("no overlap");
        // Of two tokens of one length both rules take the left one.
        checked(&["ab", "bc"]).expect("the left one");
    }

    #[test]
    fn a_longer_token_that_starts_inside_a_shorter_one_is_refused() {
        let error = checked(&["ab", "bcd"]).expect_err("an overlap").to_string();
        assert!(error.contains("`ab`") && error.contains("`bcd`"), "{error}");
    }
}
