//! A number that may differ between layers.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

/// A number that all layers have, or those of each layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum PerLayer {
    /// The same for all.
    Same(usize),
    /// One for each.
    Each(Vec<usize>),
}

impl PerLayer {
    /// The numbers of all layers.
    pub(super) fn of(numbers: impl Iterator<Item = usize>) -> PerLayer {
        let numbers: Vec<usize> = numbers.collect();
        match numbers.split_first() {
            Some((first, rest)) if rest.iter().all(|number| number == first) => {
                PerLayer::Same(*first)
            }
            _ => PerLayer::Each(numbers),
        }
    }
}

impl fmt::Display for PerLayer {
    /// Each number once, in ascending order: `256`, or `256 or 512`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerLayer::Same(number) => write!(f, "{number}"),
            PerLayer::Each(numbers) => {
                let numbers: BTreeSet<usize> = numbers.iter().copied().collect();
                let texts: Vec<String> = numbers.iter().map(usize::to_string).collect();
                f.write_str(&texts.join(" or "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_differ_are_said_once_each_and_written_for_each_layer() {
        let of = |numbers: &[usize]| PerLayer::of(numbers.iter().copied());
        let json = |numbers: &[usize]| serde_json::to_string(&of(numbers)).expect("JSON");
        assert_eq!((of(&[4, 4]).to_string(), json(&[4, 4])), ("4".to_owned(), "4".to_owned()));
        let mixed = [512, 256, 256];
        assert_eq!(of(&mixed).to_string(), "256 or 512");
        assert_eq!(json(&mixed), "[512,256,256]");
    }
}
