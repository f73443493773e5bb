//! Prompt lookup: the text repeats itself.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Drafter, DrafterEntry};

/// Prompt lookup decoding (Saxena, 2023): finds the longest earlier occurrence of the last tokens, and
/// proposes the tokens that followed it. It costs no pass of any model, and pays for texts that repeat their
/// prompt or themselves: edited code, quotations, structured data.
///
/// At least [`MATCH_MIN`](PromptLookup::MATCH_MIN) tokens must match. A draft is at most twice as long as the
/// match (the length rule of SuffixDecoding, Oliaro et al., 2024), because longer matches are more often right.
#[derive(Clone, Debug, Default)]
pub struct PromptLookup {
    /// End positions of each pair of neighbouring tokens, ascending.
    ends: HashMap<(u32, u32), Vec<usize>>,
    /// Pairs that end before this position are in `ends`.
    indexed: usize,
}

/// Most earlier occurrences of the last pair that are compared; the latest ones.
const COMPARED_MAX: usize = 64;

/// Tokens after which a match counts as long enough.
const MATCH_MAX: usize = 32;

impl PromptLookup {
    /// Fewest tokens of a match. Single tokens recur by chance.
    pub const MATCH_MIN: usize = 2;

    /// A lookup in a text that is yet to come.
    pub fn new() -> PromptLookup {
        PromptLookup::default()
    }

    /// Adds all pairs except the last one, which would match itself.
    fn index(&mut self, ids: &[u32]) {
        for end in self.indexed.max(1)..ids.len().saturating_sub(1) {
            self.ends.entry((ids[end - 1], ids[end])).or_default().push(end);
        }
        self.indexed = self.indexed.max(ids.len().saturating_sub(1));
    }

    /// End position and length of the longest earlier match of the last tokens; of several, the latest.
    fn longest(&self, ids: &[u32]) -> Option<(usize, usize)> {
        let last = ids.len().checked_sub(1)?;
        let ends = self.ends.get(&(*ids.get(last.checked_sub(1)?)?, ids[last]))?;
        let length = |end: usize| {
            let pairs = ids[..=end].iter().rev().zip(ids.iter().rev());
            pairs.take(MATCH_MAX).take_while(|(one, other)| one == other).count()
        };
        let mut best: Option<(usize, usize)> = None;
        for end in ends.iter().rev().take(COMPARED_MAX) {
            let found = length(*end);
            if best.is_none_or(|(_, length)| found > length) {
                best = Some((*end, found));
            }
            if found == MATCH_MAX {
                break;
            }
        }
        best.filter(|(_, length)| *length >= PromptLookup::MATCH_MIN)
    }
}

/// `lookup`.
pub const LOOKUP: DrafterEntry = DrafterEntry::new(
    "lookup",
    "what followed the last tokens when they occurred before in the request",
    &[],
    |_| Arc::new(|| Box::new(PromptLookup::new())),
);

impl Drafter for PromptLookup {
    fn draft(&mut self, ids: &[u32], most: usize) -> Vec<u32> {
        self.index(ids);
        let Some((end, length)) = self.longest(ids) else { return Vec::new() };
        let most = most.min(2 * length);
        let mut draft: Vec<u32> = Vec::with_capacity(most);
        for from in end + 1..end + 1 + most {
            // Beyond the text, the draft continues itself: a period that repeats.
            let next = ids.get(from).copied().unwrap_or_else(|| draft[from - ids.len()]);
            draft.push(next);
        }
        draft
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_longest_and_then_the_latest_match_is_continued() {
        let rows: [(&str, &[u32], usize, &[u32]); 7] = [
            ("empty", &[], 4, &[]),
            ("one token", &[1], 4, &[]),
            ("only one token matches", &[1, 5, 2, 5], 4, &[]),
            ("two tokens match", &[1, 2, 3, 4, 1, 2], 2, &[3, 4]),
            ("twice the match at most", &[1, 2, 3, 4, 5, 6, 7, 1, 2], 9, &[3, 4, 5, 6]),
            ("a longer match is preferred", &[9, 1, 2, 3, 8, 1, 2, 4, 9, 1, 2], 1, &[3]),
            ("the latest of two", &[1, 2, 3, 7, 1, 2, 4, 8, 1, 2], 1, &[4]),
        ];
        for (name, ids, most, expected) in rows {
            assert_eq!(PromptLookup::new().draft(ids, most), expected, "{name}");
        }
        let period = [1, 2, 1, 2, 1, 2];
        assert_eq!(PromptLookup::new().draft(&period, 5), [1, 2, 1, 2, 1], "a period goes on");
    }

    /// The definition, without an index.
    fn naive(ids: &[u32], most: usize) -> Vec<u32> {
        let matched = |end: usize| {
            (1..=end + 1).take_while(|n| ids[end + 1 - n..=end] == ids[ids.len() - n..]).count()
        };
        let ends = 0..ids.len().saturating_sub(1);
        let best = ends.map(|end| (matched(end).min(MATCH_MAX), end)).max();
        let Some((length, end)) = best.filter(|(length, _)| *length >= 2) else { return vec![] };
        let mut all = ids.to_vec();
        for from in end + 1..end + 1 + most.min(2 * length) {
            all.push(all[from]);
        }
        all.split_off(ids.len())
    }

    proptest! {
        /// A text that grows by any steps gives the drafts of the definition.
        #[test]
        fn a_growing_text_gives_the_drafts_of_the_definition(
            ids in prop::collection::vec(0_u32..3, 1..60), step in 1_usize..5, most in 1_usize..9
        ) {
            let mut lookup = PromptLookup::new();
            for end in (1..=ids.len()).step_by(step) {
                prop_assert_eq!(lookup.draft(&ids[..end], most), naive(&ids[..end], most));
            }
        }
    }
}
