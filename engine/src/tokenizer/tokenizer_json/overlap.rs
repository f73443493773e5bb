//! Special tokens that may overlap in a text: the longest is taken first, wherever it stands, while the `tokenizers` library
//! takes the one that starts first.

use std::collections::{HashMap, HashSet};

use super::error::Inexpressible;

/// The tokens that have to be taken after all others, by their positions in `texts`, such that the same tokens are taken.
///
/// The library takes some tokens out of a text before it is normalised and some after: those before come first, wherever they
/// stand.
///
/// # Errors
/// [`Inexpressible::Overlap`] of two tokens of which a text takes different ones, if a later pass does not change that or, by
/// `has_passes`, normalised text is another one.
pub(super) fn taken_later(
    texts: &[&str],
    has_passes: bool,
) -> Result<HashSet<usize>, Inexpressible> {
    let conflicts = conflicts(texts);
    let later: HashSet<usize> = conflicts.iter().map(|conflict| conflict[0]).collect();
    let error = |conflict: [usize; 2]| Inexpressible::Overlap {
        first: texts[conflict[0]].to_owned(),
        second: texts[conflict[1]].to_owned(),
    };
    let unsolved = |conflict: &&[usize; 2]| !has_passes || later.contains(&conflict[1]);
    if let Some(conflict) = conflicts.iter().find(unsolved) {
        return Err(error(*conflict));
    }
    for late in &later {
        for early in (0..texts.len()).filter(|early| !later.contains(early)) {
            let (long, short) = (texts[*late], texts[early]);
            let overlap = ends_with_beginning(long, short) || ends_with_beginning(short, long);
            if long.contains(short) || (overlap && short.len() <= long.len()) {
                return Err(error([*late, early]));
            }
        }
    }
    Ok(later)
}

/// Pairs of tokens of which a text may have the second, which is longer, from inside of the first.
fn conflicts(texts: &[&str]) -> Vec<[usize; 2]> {
    let mut by_beginning: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, text) in texts.iter().enumerate() {
        for border in borders(text) {
            by_beginning.entry(&text[..border]).or_default().push(at);
        }
    }
    let mut conflicts = Vec::new();
    for (at, first) in texts.iter().enumerate() {
        for border in borders(first) {
            for other in by_beginning.get(&first[border..]).into_iter().flatten() {
                let second = texts[*other];
                let joined = format!("{}{second}", &first[..border]);
                if second.len() > first.len() && !starts_with_longer(&joined, first, texts) {
                    conflicts.push([at, *other]);
                }
            }
        }
    }
    conflicts
}

/// Whether an end of `first` is a beginning of `second`.
fn ends_with_beginning(first: &str, second: &str) -> bool {
    borders(first).any(|border| second.starts_with(&first[border..]))
}

/// Positions inside a text between its characters.
fn borders(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().skip(1).map(|(at, _)| at)
}

/// Whether `text` starts with a token longer than `first`, which both rules take there.
fn starts_with_longer(text: &str, first: &str, texts: &[&str]) -> bool {
    texts.iter().any(|other| other.len() > first.len() && text.starts_with(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_beginnings_may_share_characters() {
        let texts = ["<s>", "</s>", "<s>x", "  ", "   ", "    ", "\n", "\n\n"];
        assert!(taken_later(&texts, false).expect("no overlap").is_empty());
        // Of two tokens of one length both rules take the left one.
        assert!(taken_later(&["ab", "bc"], false).expect("the left one").is_empty());
    }

    #[test]
    fn a_longer_token_that_starts_inside_a_shorter_one_is_taken_before_it() {
        let texts = [">>A<<", ">>LONGER<<", "<|end|>", ">>B<<"];
        let later = taken_later(&texts, true).expect("two passes");
        assert_eq!(later, HashSet::from([0, 3]));
        let error = taken_later(&texts, false).expect_err("one pass").to_string();
        assert!(error.contains("`>>A<<`") && error.contains("`<|end|>`"), "{error}");
    }

    #[test]
    fn chains_of_overlaps_are_refused() {
        for texts in [&["ab", "bcd", "cdef"], &["ab", "bcd", "a"]] {
            let error = taken_later(texts, true).expect_err("no two passes").to_string();
            assert!(error.contains("overlap"), "{error}");
        }
    }
}
