//! The latest changes of a tree, so that a match is not looked for anew after each of them.

use std::cell::Cell;
use std::collections::VecDeque;

use super::{Namespace, PrefixTree};

/// Texts that are remembered.
const TEXTS: usize = 16;

/// A number of matched tokens, and the state of the tree in which it was found. The default is of no state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    state: u64,
    pub(super) rows: usize,
}

/// The latest texts that were added since pages were dropped.
#[derive(Debug)]
pub(super) struct Recent {
    /// Number of changes, the first of which made the tree.
    state: u64,
    texts: VecDeque<Added>,
}

/// What was added of a text: the tokens behind those that the tree had.
#[derive(Debug, Default)]
pub(super) struct Added {
    namespace: Namespace,
    /// Number of tokens before them.
    start: usize,
    tokens: Vec<u32>,
}

impl Added {
    /// Whether a match of `tokens` from before may have become longer: the text has the token after it. If the text has no more before
    /// its added tokens than the match, it has the same tokens there only if the tree had them, too.
    pub(super) fn may_lengthen(&self, known: Known, namespace: &Namespace, tokens: &[u32]) -> bool {
        let added = known.rows.checked_sub(self.start).and_then(|at| self.tokens.get(at));
        added.is_some() && added == tokens.get(known.rows) && self.namespace == *namespace
    }
}

impl Default for Recent {
    fn default() -> Recent {
        Recent { state: 1, texts: VecDeque::new() }
    }
}

impl Recent {
    /// A text is added: no match becomes shorter.
    pub(super) fn add(&mut self, namespace: &Namespace, start: usize, tokens: &[u32]) {
        self.state += 1;
        let oldest = if self.texts.len() < TEXTS { None } else { self.texts.pop_front() };
        let mut added = oldest.unwrap_or_default();
        added.tokens.clear();
        added.tokens.extend_from_slice(tokens);
        self.texts.push_back(Added { namespace: namespace.clone(), start, ..added });
    }

    /// Pages are dropped: any match may be shorter.
    pub(super) fn forget(&mut self) {
        self.state += 1;
        self.texts.clear();
    }

    /// The texts that were added since the state of a match; `None` if something else has changed.
    pub(super) fn since(&self, known: Known) -> Option<impl Iterator<Item = &Added>> {
        let changes = usize::try_from(self.state - known.state).ok()?;
        let first = self.texts.len().checked_sub(changes)?;
        (known.state > 0).then(|| self.texts.range(first..))
    }

    /// A match of now.
    pub(super) fn known(&self, rows: usize) -> Known {
        Known { state: self.state, rows }
    }
}

impl PrefixTree {
    /// As [`matched`](PrefixTree::matched), of tokens for which it was asked before. It looks only at what has changed
    /// since.
    pub(crate) fn matched_again(
        &self,
        namespace: &Namespace,
        tokens: &[u32],
        known: &Cell<Known>,
    ) -> usize {
        let before = known.get();
        let may_differ = self
            .recent
            .since(before)
            .is_none_or(|mut added| added.any(|text| text.may_lengthen(before, namespace, tokens)));
        let rows = if may_differ { self.matched(namespace, tokens) } else { before.rows };
        known.set(self.recent.known(rows));
        rows
    }
}
