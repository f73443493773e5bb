//! Finds the special tokens of one class that end at each position of a text.

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;

use super::{Control, Special};
use crate::tokenizer::error::TokenizerError;

#[cfg(test)]
thread_local! {
    /// Bytes that searches of this thread have read, and tokens that they have compared with a length.
    pub(super) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts a step of a search for tests of the work that a text takes.
fn count_step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// What decides whether an occurrence of a token counts: equal for all tokens of a search, so that a search
/// never skips tokens one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    /// As [`Special::on_request`].
    pub(super) on_request: bool,
    /// As [`Special::controls`].
    pub(super) controls: bool,
    /// Whether they are white space only.
    blank: bool,
}

impl Class {
    /// All classes.
    fn all() -> impl Iterator<Item = Class> {
        (0..8).map(|bits| Class {
            on_request: bits & 1 != 0,
            controls: bits & 2 != 0,
            blank: bits & 4 != 0,
        })
    }

    /// The class of a token.
    pub(super) fn of(special: &Special) -> Class {
        let blank = special.text.trim().is_empty();
        Class { on_request: special.on_request, controls: special.controls, blank }
    }

    /// Whether occurrences can count.
    pub(super) fn is_matched(self, control: Control<'_>) -> bool {
        match control {
            Control::Everywhere => true,
            Control::Nowhere => !self.on_request,
            // White space cannot be told apart by its position.
            Control::Without(_) => !(self.controls && self.blank),
        }
    }

    /// Length in bytes of the longest occurrence that ends at `end` and counts.
    pub(super) fn length_max(self, end: usize, control: Control<'_>) -> usize {
        match control {
            Control::Without(positions) if self.controls => {
                let before = positions.partition_point(|position| *position < end);
                let foreign = before.checked_sub(1).map(|last| positions[last]);
                foreign.map_or(end, |foreign| end - foreign - 1)
            }
            _ => end,
        }
    }
}

/// The best token of a class that ends at a position; the order is that in which tokens are taken.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) special: u32,
    pub(super) end: usize,
    /// Number of its search.
    pub(super) search: usize,
    /// The automaton's state at `end`.
    state: StateID,
}

/// Finds in one pass which tokens of a class end at each position.
pub(super) struct Search {
    pub(super) class: Class,
    automaton: NFA,
    start: StateID,
    /// The token of each pattern, longest first, then by id.
    specials: Vec<u32>,
}

impl Search {
    /// A search for each class that has tokens. `specials` are in the order in which they are taken.
    pub(super) fn all(specials: &[Special]) -> Result<Vec<Search>, TokenizerError> {
        let mut searches = Vec::new();
        for class in Class::all() {
            let of_class = |n: &u32| Class::of(&specials[*n as usize]) == class;
            let numbers: Vec<u32> = (0..specials.len() as u32).filter(of_class).collect();
            if numbers.is_empty() {
                continue;
            }
            let texts = numbers.iter().map(|n| &specials[*n as usize].text);
            let (automaton, start) = build(texts)?;
            searches.push(Search { class, automaton, start, specials: numbers });
        }
        Ok(searches)
    }

    /// The longest token at every position where one of the class ends.
    pub(super) fn candidates<'a>(
        &'a self,
        specials: &'a [Special],
        search: usize,
        text: &'a str,
        control: Control<'a>,
    ) -> impl Iterator<Item = Candidate> + 'a {
        let mut state = self.start;
        text.bytes().enumerate().filter_map(move |(at, byte)| {
            count_step();
            state = self.automaton.next_state(Anchored::No, state, byte);
            if !self.automaton.is_match(state) {
                return None;
            }
            let every = Candidate { special: 0, end: at + 1, search, state };
            self.longest(specials, every, usize::MAX, control)
        })
    }

    /// The longest token of at most `length_max` bytes that ends where `candidate` does.
    ///
    /// A state's patterns are in the order of falling lengths: each is an end of those before it.
    pub(super) fn longest(
        &self,
        specials: &[Special],
        Candidate { end, search, state, .. }: Candidate,
        length_max: usize,
        control: Control<'_>,
    ) -> Option<Candidate> {
        let length_max = length_max.min(self.class.length_max(end, control));
        let special = |n: usize| self.specials[self.automaton.match_pattern(state, n).as_usize()];
        let (mut from, mut to) = (0, self.automaton.match_len(state));
        let count = to;
        while from < to {
            count_step();
            let middle = from.midpoint(to);
            match specials[special(middle) as usize].text.len() > length_max {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        (from < count).then(|| Candidate { special: special(from), end, search, state })
    }
}

/// Finds where tokens start: a search for the tokens that no other token begins. At most one of these
/// starts at a position, and one does wherever any token starts.
pub(super) struct Starts {
    automaton: NFA,
    start: StateID,
    /// Length in bytes of each pattern.
    lengths: Vec<usize>,
}

impl Starts {
    /// For these texts; `None` without any.
    pub(super) fn new<'a>(
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<Option<Starts>, TokenizerError> {
        let mut texts: Vec<&str> = texts.collect();
        texts.sort_unstable();
        // In this order a text follows its beginnings, with only their other continuations between.
        texts.dedup_by(|text, first| text.starts_with(*first));
        if texts.is_empty() {
            return Ok(None);
        }
        let (automaton, start) = build(&texts)?;
        Ok(Some(Starts { automaton, start, lengths: texts.iter().map(|t| t.len()).collect() }))
    }

    /// Positions in bytes, ascending, where any of the tokens starts.
    pub(super) fn of(&self, text: &str) -> Vec<usize> {
        let mut state = self.start;
        let mut starts = Vec::new();
        for (at, byte) in text.bytes().enumerate() {
            state = self.automaton.next_state(Anchored::No, state, byte);
            if self.automaton.is_match(state) {
                let patterns = 0..self.automaton.match_len(state);
                let length = |n| self.lengths[self.automaton.match_pattern(state, n).as_usize()];
                starts.extend(patterns.map(|n| at + 1 - length(n)));
            }
        }
        starts.sort_unstable();
        starts
    }
}

fn build<T: AsRef<[u8]>>(
    texts: impl IntoIterator<Item = T>,
) -> Result<(NFA, StateID), TokenizerError> {
    let automaton = NFA::new(texts)
        .map_err(|source| TokenizerError::SpecialTokens { source: source.into() })?;
    let start = automaton
        .start_state(Anchored::No)
        .map_err(|source| TokenizerError::SpecialSearch { source })?;
    Ok((automaton, start))
}
