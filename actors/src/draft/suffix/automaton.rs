//! A suffix automaton with counts.

use std::collections::HashMap;

/// The smallest automaton that accepts every part of a growing text (Blumer et al., 1985). Each state stands for
/// the parts that end at the same positions; the longest has `len` tokens, and the link leads to the state of the
/// longest shorter one. Appending a token takes constant time on average, apart from the counts.
#[derive(Clone, Debug)]
pub(super) struct Automaton {
    states: Vec<State>,
    /// Transitions of the root, which may have as many as the vocabulary has tokens.
    of_root: HashMap<u32, u32>,
    /// State of the whole text.
    last: u32,
    /// State and length of the longest end of the text that is counted.
    counted: (u32, u32),
}

#[derive(Clone, Debug, Default)]
struct State {
    len: u32,
    /// State of the longest end that occurs at more positions. The root links to itself.
    link: u32,
    /// Number of positions at which the state's parts of up to [`PART_MAX`] tokens end.
    count: u32,
    next: Vec<(u32, u32)>,
}

/// Longest part that is counted and matched.
pub(super) const PART_MAX: usize = 64;

const ROOT: u32 = 0;

impl Default for Automaton {
    fn default() -> Automaton {
        let states = vec![State::default()];
        Automaton { states, of_root: HashMap::new(), last: ROOT, counted: (ROOT, 0) }
    }
}

impl Automaton {
    fn state(&self, state: u32) -> &State {
        &self.states[state as usize]
    }

    fn step(&self, state: u32, token: u32) -> Option<u32> {
        if state == ROOT {
            return self.of_root.get(&token).copied();
        }
        self.state(state).next.iter().find(|(own, _)| *own == token).map(|(_, to)| *to)
    }

    fn set_step(&mut self, state: u32, token: u32, to: u32) {
        if state == ROOT {
            self.of_root.insert(token, to);
            return;
        }
        let next = &mut self.states[state as usize].next;
        match next.iter_mut().find(|(own, _)| *own == token) {
            Some((_, old)) => *old = to,
            None => next.push((token, to)),
        }
    }

    fn add(&mut self, state: State) -> u32 {
        self.states.push(state);
        (self.states.len() - 1) as u32
    }

    /// Tokens of the text.
    pub(super) fn len(&self) -> usize {
        self.state(self.last).len as usize
    }

    /// Appends a token to the text.
    pub(super) fn push(&mut self, token: u32) {
        let len = self.state(self.last).len + 1;
        let new = self.add(State { len, ..State::default() });
        let mut at = Some(self.last);
        let mut known = None;
        while let Some(state) = at {
            if let Some(to) = self.step(state, token) {
                known = Some((state, to));
                break;
            }
            self.set_step(state, token, new);
            at = (state != ROOT).then(|| self.state(state).link);
        }
        let link = known.map_or(ROOT, |(from, to)| self.split(from, to, token));
        self.states[new as usize].link = link;
        self.last = new;
        self.count(token);
    }

    /// The state of the part that ends with `token` after the longest part of `from`: `to`, or a new one split
    /// off it.
    fn split(&mut self, from: u32, to: u32, token: u32) -> u32 {
        let len = self.state(from).len + 1;
        if self.state(to).len == len {
            return to;
        }
        let shorter = self.add(State { len, ..self.state(to).clone() });
        self.states[to as usize].link = shorter;
        let mut at = Some(from);
        while let Some(state) = at.filter(|state| self.step(*state, token) == Some(to)) {
            self.set_step(state, token, shorter);
            at = (state != ROOT).then(|| self.state(state).link);
        }
        shorter
    }

    /// Counts the ends of the text of up to [`PART_MAX`] tokens, the last of which is `token`.
    fn count(&mut self, token: u32) {
        let (state, len) = self.counted;
        self.counted = match self.step(state, token) {
            Some(to) => self.shortened(to, len + 1),
            None => self.shortened(self.last, self.state(self.last).len),
        };
        let mut at = self.counted.0;
        while at != ROOT {
            let state = &mut self.states[at as usize];
            state.count += 1;
            at = state.link;
        }
    }

    /// A state and length, where longer parts than [`PART_MAX`] lose their beginning.
    fn shortened(&self, state: u32, len: u32) -> (u32, u32) {
        let len = len.min(PART_MAX as u32);
        let mut state = state;
        while self.state(self.state(state).link).len >= len && state != ROOT {
            state = self.state(state).link;
        }
        (state, len)
    }

    /// Length of the shortest part of a state.
    pub(super) fn shortest(&self, state: u32) -> usize {
        match state {
            ROOT => 0,
            _ => self.state(self.state(state).link).len as usize + 1,
        }
    }

    /// The parts of the text that `ends` ends with, the longest first: states and lengths. Only the last
    /// [`PART_MAX`] tokens count.
    pub(super) fn matches(&self, ends: &[u32]) -> impl Iterator<Item = (u32, usize)> + use<'_> {
        let (mut state, mut len) = (ROOT, 0);
        for token in &ends[ends.len().saturating_sub(PART_MAX)..] {
            loop {
                if let Some(to) = self.step(state, *token) {
                    (state, len) = (to, len + 1);
                    break;
                }
                if state == ROOT {
                    len = 0;
                    break;
                }
                state = self.state(state).link;
                len = self.state(state).len as usize;
            }
        }
        let first = (state != ROOT).then_some((state, len));
        std::iter::successors(first, |(state, _)| {
            let link = self.state(*state).link;
            (link != ROOT).then(|| (link, self.state(link).len as usize))
        })
    }

    /// Number of positions at which the parts of a state end.
    pub(super) fn occurrences(&self, state: u32) -> u32 {
        self.state(state).count
    }

    /// The tokens that follow a state's parts, with the states that they lead to. Not for the root.
    pub(super) fn following(&self, state: u32) -> &[(u32, u32)] {
        &self.state(state).next
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &[u32]) -> Automaton {
        let mut automaton = Automaton::default();
        text.iter().for_each(|token| automaton.push(*token));
        automaton
    }

    fn occurrences(text: &[u32], part: &[u32]) -> usize {
        text.windows(part.len()).filter(|window| *window == part).count()
    }

    proptest! {
        /// Every part of the text is found with the number of its occurrences, and its followers are those of
        /// the text.
        #[test]
        fn parts_and_their_followers_are_counted_as_by_search(
            text in prop::collection::vec(0_u32..3, 1..140), from in 0_usize..140, len in 1_usize..80
        ) {
            let automaton = of(&text);
            prop_assert_eq!(automaton.len(), text.len());
            let from = from % text.len();
            let part = &text[from..(from + len).min(text.len())];
            let part = &part[part.len().saturating_sub(PART_MAX)..];
            for (state, len) in automaton.matches(part) {
                let end = &part[part.len() - len..];
                prop_assert_eq!(automaton.occurrences(state) as usize, occurrences(&text, end));
                for (token, to) in automaton.following(state) {
                    let longer: Vec<u32> = end.iter().chain([token]).copied().collect();
                    let found = occurrences(&text, &longer);
                    prop_assert!(found > 0);
                    if longer.len() <= PART_MAX {
                        prop_assert_eq!(automaton.occurrences(*to) as usize, found);
                    }
                }
            }
            prop_assert_eq!(automaton.matches(part).next().map(|(_, len)| len), Some(part.len()));
        }
    }

    #[test]
    fn a_text_of_one_token_has_as_many_states_as_tokens() {
        let automaton = of(&[7; 100_000]);
        assert_eq!(automaton.states.len(), 100_001);
    }

    #[test]
    fn what_never_occurred_has_no_match() {
        assert_eq!(of(&[1, 2, 3]).matches(&[4]).count(), 0);
        assert_eq!(of(&[]).matches(&[1, 2]).count(), 0);
        assert_eq!(of(&[1, 2, 3]).matches(&[9, 2]).map(|(_, len)| len).collect::<Vec<_>>(), [1]);
    }
}
