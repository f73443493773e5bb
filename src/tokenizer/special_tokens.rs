//! Finds special tokens in the text, before any other rule applies.

mod taken;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;

use self::taken::Taken;
use super::error::TokenizerError;
use super::token_table::TokenTable;

/// Longest text of a special token, in bytes: longer than in any known vocabulary.
const TEXT_BYTES_MAX: usize = 4096;

/// Longest texts of all special tokens together, in bytes. The index takes some 30 bytes for each.
const ALL_BYTES_MAX: usize = 4 << 20;

/// A range of text, or a token found in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fragment<'t> {
    /// Text for the word or piece rules; never empty.
    Text(&'t str),
    /// A special token.
    Token(u32),
}

/// Where control and unknown tokens are matched. User-defined tokens are matched everywhere.
#[derive(Clone, Copy, Debug)]
pub(super) enum Control<'a> {
    /// Everywhere.
    Everywhere,
    /// Nowhere.
    Nowhere,
    /// Where they contain none of these byte positions, which are ascending. User-defined tokens that
    /// look like control tokens are treated alike.
    Without(&'a [usize]),
}

/// One special token to search for.
struct Special {
    id: u32,
    text: String,
    /// Searched for only if the caller allows control tokens in the text.
    on_request: bool,
    /// A control token, by its kind or by its look.
    controls: bool,
    strip_left: bool,
    strip_right: bool,
}

/// All special tokens, longest first, then by id.
pub(super) struct SpecialTokens {
    specials: Vec<Special>,
    /// Finds in one pass which of `specials` end at each position; pattern n is `specials[n]`.
    search: Option<Search>,
}

struct Search {
    automaton: NFA,
    start: StateID,
}

/// The best token that ends at a position; the order is that in which tokens are taken.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    special: u32,
    end: usize,
    /// The automaton's state at `end`.
    state: StateID,
    /// Number of longer tokens that end there.
    longer: u32,
}

impl SpecialTokens {
    /// Collects the control, unknown and user-defined tokens of `table`.
    pub(super) fn new(table: &TokenTable) -> Result<Self, TokenizerError> {
        let ids = (0..table.len()).filter(|id| table.traits(*id).is_special());
        let mut bytes = 0;
        for id in ids.clone() {
            let length = table.text(id).len();
            if length > TEXT_BYTES_MAX {
                return Err(TokenizerError::SpecialTokenTooLong {
                    id,
                    length,
                    most: TEXT_BYTES_MAX,
                });
            }
            bytes += length;
        }
        if bytes > ALL_BYTES_MAX {
            return Err(TokenizerError::SpecialTokensTooLong { bytes, most: ALL_BYTES_MAX });
        }
        let mut specials: Vec<Special> = ids
            .map(|id| {
                let (traits, text) = (table.traits(id), table.text(id));
                Special {
                    id,
                    text: text.to_owned(),
                    on_request: traits.is_hidden(),
                    controls: traits.is_hidden() || looks_like_control(text),
                    strip_left: traits.strip_left,
                    strip_right: traits.strip_right,
                }
            })
            .collect();
        specials.sort_by_key(|special| Reverse(special.text.len()));
        let search = match specials.is_empty() {
            true => None,
            false => Some(Search::new(&specials)?),
        };
        Ok(Self { specials, search })
    }

    /// Texts of the tokens that are control tokens by their kind or by their look, longest first.
    pub(super) fn control_texts(&self) -> impl Iterator<Item = &str> {
        self.specials.iter().filter(|special| special.controls).map(|special| &*special.text)
    }

    /// Positions in bytes, ascending, where control tokens start in `text`; none of white space only.
    pub(super) fn control_positions(&self, text: &str) -> Vec<usize> {
        let Some(search) = &self.search else { return Vec::new() };
        let candidates = self.candidates(search, text, Control::Everywhere);
        let mut starts = Vec::new();
        for Reverse(mut candidate) in candidates {
            // All that end here, for a shorter token may be a control token where a longer is not.
            loop {
                let special = &self.specials[candidate.special as usize];
                if special.controls && !special.text.trim().is_empty() {
                    starts.push(candidate.end - special.text.len());
                }
                candidate.longer += 1;
                match self.longest(search, candidate, usize::MAX, Control::Everywhere) {
                    Some(shorter) => candidate = shorter,
                    None => break,
                }
            }
        }
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// Whether any token absorbs the white space next to it.
    pub(super) fn any_strips(&self) -> bool {
        self.specials.iter().any(|special| special.strip_left || special.strip_right)
    }

    /// Splits `text` at its special tokens. The longest token takes all its occurrences first, from
    /// left to right, then the next.
    ///
    /// Takes O(n log n) for n bytes: an occurrence that overlaps a taken one is replaced by the longest
    /// token with the same end that fits.
    pub(super) fn partition<'t>(&self, text: &'t str, control: Control<'_>) -> Vec<Fragment<'t>> {
        let mut fragments = Vec::new();
        let mut done = 0;
        for (start, end, id) in self.take(text, control).in_order() {
            if start > done {
                fragments.push(Fragment::Text(&text[done..start]));
            }
            fragments.push(Fragment::Token(id));
            done = end;
        }
        if done < text.len() {
            fragments.push(Fragment::Text(&text[done..]));
        }
        fragments
    }

    fn take(&self, text: &str, control: Control<'_>) -> Taken {
        let mut taken = Taken::new(text.len());
        let Some(search) = &self.search else { return taken };
        let candidates = self.candidates(search, text, control);
        let mut candidates: BinaryHeap<Reverse<Candidate>> = candidates.into();
        while let Some(Reverse(candidate)) = candidates.pop() {
            let Some(free_from) = taken.free_before(candidate.end) else { continue };
            let special = &self.specials[candidate.special as usize];
            let start = candidate.end - special.text.len();
            if start < free_from {
                let length_max = candidate.end - free_from;
                let next = self.longest(search, candidate, length_max, control);
                candidates.extend(next.map(Reverse));
                continue;
            }
            let (mut from, mut to) = (start, candidate.end);
            if special.strip_left {
                from = free_from + text[free_from..start].trim_end_matches(is_ascii_space).len();
            }
            if special.strip_right {
                let free = &text[to..taken.free_until(to)];
                to += free.len() - free.trim_start_matches(is_ascii_space).len();
            }
            taken.insert(from, to, special.id);
        }
        taken
    }

    /// The longest matched token at every position where one ends.
    fn candidates(
        &self,
        search: &Search,
        text: &str,
        control: Control<'_>,
    ) -> Vec<Reverse<Candidate>> {
        let mut found = Vec::new();
        let mut state = search.start;
        for (at, byte) in text.bytes().enumerate() {
            state = search.automaton.next_state(Anchored::No, state, byte);
            if search.automaton.is_match(state) {
                let every = Candidate { special: 0, end: at + 1, state, longer: 0 };
                found.extend(self.longest(search, every, usize::MAX, control).map(Reverse));
            }
        }
        found
    }

    /// The longest matched token of at most `length_max` bytes that ends where `candidate` does.
    fn longest(
        &self,
        search: &Search,
        candidate: Candidate,
        length_max: usize,
        control: Control<'_>,
    ) -> Option<Candidate> {
        let Candidate { end, state, mut longer, .. } = candidate;
        while (longer as usize) < search.automaton.match_len(state) {
            let special = search.automaton.match_pattern(state, longer as usize).as_u32();
            let found = &self.specials[special as usize];
            if found.text.len() <= length_max && found.is_matched(end, control) {
                return Some(Candidate { special, end, state, longer });
            }
            longer += 1;
        }
        None
    }
}

impl Search {
    fn new(specials: &[Special]) -> Result<Self, TokenizerError> {
        let automaton = NFA::new(specials.iter().map(|special| &special.text))
            .map_err(|source| TokenizerError::SpecialTokens { source: source.into() })?;
        let start = automaton
            .start_state(Anchored::No)
            .map_err(|source| TokenizerError::SpecialSearch { source })?;
        Ok(Self { automaton, start })
    }
}

impl Special {
    /// Whether an occurrence that ends at `end` counts.
    fn is_matched(&self, end: usize, control: Control<'_>) -> bool {
        match control {
            Control::Everywhere => true,
            Control::Nowhere => !self.on_request,
            Control::Without(positions) => {
                let start = end - self.text.len();
                let next = positions.partition_point(|position| *position < start);
                let is_foreign = positions.get(next).is_some_and(|position| *position < end);
                // White space cannot be told apart by its position.
                !self.controls || !(is_foreign || self.text.trim().is_empty())
            }
        }
    }
}

/// Whether a token is a control token by its look: some files call such tokens user-defined.
fn looks_like_control(text: &str) -> bool {
    let between = |open, close| text.starts_with(open) && text.ends_with(close);
    between("<|", "|>") || between("<｜", "｜>")
}

/// White space as in C's `isspace`.
fn is_ascii_space(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')
}

#[cfg(test)]
mod tests;
