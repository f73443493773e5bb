//! Drafts from what followed the same tokens before, in this request or in recent ones.

use std::sync::{Arc, Mutex, PoisonError};

use lapwing_plan::registry::{Parameter, Parameters};

use super::{Drafter, DrafterEntry};

mod automaton;

use automaton::{Automaton, PART_MAX};

/// Suffix decoding (Oliaro et al., 2024, arXiv 2411.04975): finds the parts of earlier text that the tokens so
/// far end with, and proposes the most frequent continuation. Earlier text is that of the request, and the
/// answers to recent requests of the engine. It costs no pass of any model.
///
/// From a match of p tokens at most p tokens are drafted. Each has the highest count of all that followed; it is
/// drafted while the product of the shares is at least [`SHARE_MIN`](SuffixDrafter::SHARE_MIN), or another
/// [`share_min`](SuffixDrafter::share_min). Of all matches
/// of at least two tokens, in the request and in earlier answers, the draft with the highest expected number of
/// accepted tokens is proposed, where the shares count as probabilities.
#[derive(Debug)]
pub struct SuffixDrafter {
    own: Automaton,
    recent: RecentText,
    /// Tokens of the request that are in `own`, and the number of those that were there at the first draft.
    ids: Vec<u32>,
    begun_with: Option<usize>,
    share_min: f64,
}

/// Answers to recent requests, shared by the drafters of an engine. Holds at most
/// [`RECENT_MAX`](RecentText::RECENT_MAX) tokens; the older half is dropped when it is full.
#[derive(Clone, Debug, Default)]
pub struct RecentText(Arc<Mutex<Generations>>);

/// Text of two generations, so that old text can be dropped.
#[derive(Debug, Default)]
struct Generations {
    young: Automaton,
    old: Automaton,
}

/// Stands between texts; no token.
const BORDER: u32 = u32::MAX;

/// Fewest tokens of a match. Single tokens recur by chance.
const MATCH_MIN: usize = 2;

impl RecentText {
    /// Most tokens that are remembered.
    pub const RECENT_MAX: usize = 1 << 17;

    /// No text.
    pub fn new() -> RecentText {
        RecentText::default()
    }

    /// Adds the text of an answer.
    fn add(&self, ids: &[u32]) {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if texts.young.len() + ids.len() > RecentText::RECENT_MAX / 2 {
            texts.old = std::mem::take(&mut texts.young);
        }
        let ids = &ids[ids.len().saturating_sub(RecentText::RECENT_MAX / 2)..];
        ids.iter().chain([&BORDER]).for_each(|id| texts.young.push(*id));
    }
}

/// A proposal, and the expected number of its accepted tokens.
#[derive(Debug, Default)]
struct Proposal {
    tokens: Vec<u32>,
    score: f64,
}

impl SuffixDrafter {
    /// Least product of shares for which a token is drafted, if no other is set.
    pub const SHARE_MIN: f64 = 0.1;

    /// A drafter for a request, which also knows the recent text and adds the request's answer to it at the
    /// end.
    pub fn new(recent: &RecentText) -> SuffixDrafter {
        let (own, recent) = (Automaton::default(), recent.clone());
        let share_min = SuffixDrafter::SHARE_MIN;
        SuffixDrafter { own, recent, ids: Vec::new(), begun_with: None, share_min }
    }

    /// With this least product of shares for which a token is drafted.
    #[must_use]
    pub fn share_min(mut self, share_min: f64) -> SuffixDrafter {
        self.share_min = share_min;
        self
    }

    /// The best proposal from a text for tokens that end with `ids`. `is_own` if the text ends with them itself.
    fn best(&self, text: &Automaton, ids: &[u32], most: usize, is_own: bool) -> Proposal {
        let mut best = Proposal::default();
        for (state, matched) in text.matches(ids).take_while(|(_, matched)| *matched >= MATCH_MIN) {
            // The longest part is counted only to a length, so a long match gives its first tokens up for the draft.
            let part = matched.min(text.shortest(state).max(PART_MAX / 2));
            let room = PART_MAX.saturating_sub(part).min(matched).min(most);
            let (mut at, mut seen) = (state, text.occurrences(state) - u32::from(is_own));
            let (mut share, mut proposal) = (1.0, Proposal::default());
            while proposal.tokens.len() < room {
                let counted = text.following(at).iter().filter(|(token, _)| *token != BORDER);
                let most_frequent =
                    counted.max_by_key(|(token, to)| (text.occurrences(*to), !token));
                let Some((token, to)) = most_frequent else { break };
                share *= f64::from(text.occurrences(*to)) / f64::from(seen.max(1));
                if share < self.share_min {
                    break;
                }
                proposal.tokens.push(*token);
                proposal.score += share;
                (at, seen) = (*to, text.occurrences(*to));
            }
            if proposal.score > best.score {
                best = proposal;
            }
        }
        best
    }
}

/// The parameter of the least product of shares.
pub(super) const SHARE: Parameter = Parameter::new(
    "share",
    "least probability, by the counts, with which a token is drafted",
    SuffixDrafter::SHARE_MIN,
    0.0..=1.0,
);

/// `suffix`.
pub const SUFFIX: DrafterEntry = DrafterEntry::new(
    "suffix",
    "what followed the last tokens most often, in the request or in recent answers",
    &[SHARE],
    |parameters| {
        let make = maker(parameters);
        Arc::new(move || Box::new(make()))
    },
);

/// Makes drafters of one engine, with the parameter `share`.
pub(super) fn maker(parameters: &Parameters) -> impl Fn() -> SuffixDrafter + use<> {
    let (recent, share) = (RecentText::new(), parameters.value(SHARE.name));
    move || SuffixDrafter::new(&recent).share_min(share)
}

impl Drafter for SuffixDrafter {
    fn draft(&mut self, ids: &[u32], most: usize) -> Vec<u32> {
        self.begun_with.get_or_insert(ids.len().saturating_sub(1));
        let new = ids.get(self.ids.len()..).unwrap_or_default();
        new.iter().for_each(|id| self.own.push(*id));
        self.ids.extend_from_slice(new);
        let own = self.best(&self.own, ids, most, true);
        let texts = self.recent.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = [&texts.young, &texts.old].map(|text| self.best(text, ids, most, false));
        let all = std::iter::once(own).chain(recent);
        all.max_by(|a, b| a.score.total_cmp(&b.score)).map(|best| best.tokens).unwrap_or_default()
    }
}

impl Drop for SuffixDrafter {
    fn drop(&mut self) {
        let answer = self.begun_with.and_then(|start| self.ids.get(start..)).unwrap_or_default();
        if !answer.is_empty() {
            self.recent.add(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(text: &[u32], most: usize) -> Vec<u32> {
        SuffixDrafter::new(&RecentText::new()).draft(text, most)
    }

    #[test]
    fn the_most_frequent_continuation_of_a_match_is_drafted() {
        let rows: [(&str, &[u32], &[u32]); 6] = [
            ("no text", &[], &[]),
            ("one token matches", &[1, 5, 2, 5], &[]),
            ("as many tokens as match", &[1, 2, 3, 4, 1, 2], &[3, 4]),
            ("the more frequent of two", &[5, 1, 2, 3, 6, 1, 2, 4, 7, 1, 2, 3, 8, 1, 2], &[3]),
            ("a longer match is surer", &[9, 1, 2, 3, 8, 1, 2, 4, 8, 1, 2, 4, 9, 1, 2], &[3, 8, 1]),
            ("a period goes on", &[1, 2, 3, 1, 2, 3, 1, 2, 3], &[1, 2, 3]),
        ];
        for (name, text, expected) in rows {
            let found = draft(text, 15);
            assert!(found.starts_with(expected) || expected.is_empty(), "{name}: {found:?}");
            assert_eq!(found.is_empty(), expected.is_empty(), "{name}: {found:?}");
            assert!(draft(text, 1).len() <= 1, "{name}");
        }
    }

    #[test]
    fn answers_to_earlier_requests_are_remembered_and_prompts_are_not() {
        let recent = RecentText::new();
        let mut first = SuffixDrafter::new(&recent);
        assert!(first.draft(&[50, 51, 52, 10], 8).is_empty());
        first.draft(&[50, 51, 52, 10, 11, 12, 13, 14], 8);
        assert!(SuffixDrafter::new(&recent).draft(&[7, 10, 11], 8).is_empty(), "it is not over");
        drop(first);
        assert_eq!(SuffixDrafter::new(&recent).draft(&[7, 10, 11], 8), [12, 13]);
        assert!(SuffixDrafter::new(&recent).draft(&[7, 50, 51], 8).is_empty(), "of the prompt");
        assert!(SuffixDrafter::new(&recent).draft(&[13, 14], 8).is_empty(), "beyond its end");
    }

    #[test]
    fn a_match_of_any_length_has_a_draft() {
        let recent = RecentText::new();
        let text: Vec<u32> = (0..400).collect();
        recent.add(&text);
        for matched in [2, 15, 32, 50, 63, 64, 65, 100, 384] {
            let drafted = SuffixDrafter::new(&recent).draft(&text[..matched], 15);
            let expected = &text[matched..matched + matched.min(15)];
            assert_eq!(drafted, expected, "after {matched} tokens");
        }
    }

    #[test]
    fn old_text_is_dropped() {
        let recent = RecentText::new();
        recent.add(&[1, 2, 3, 4]);
        assert_eq!(SuffixDrafter::new(&recent).draft(&[1, 2], 8), [3, 4]);
        let other: Vec<u32> = (0..RecentText::RECENT_MAX as u32 / 2).map(|id| id + 100).collect();
        recent.add(&other);
        assert_eq!(SuffixDrafter::new(&recent).draft(&[1, 2], 8), [3, 4], "of the old generation");
        recent.add(&other);
        assert!(SuffixDrafter::new(&recent).draft(&[1, 2], 8).is_empty());
    }
}
