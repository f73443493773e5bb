//! The latest changes of a tree, so that a match is not looked for anew after each of them.

use std::collections::VecDeque;

use super::Namespace;

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
    texts: VecDeque<(Namespace, Vec<u32>)>,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent { state: 1, texts: VecDeque::new() }
    }
}

impl Recent {
    /// A text is added: no match becomes shorter.
    pub(super) fn add(&mut self, namespace: &Namespace, tokens: &[u32]) {
        self.state += 1;
        let mut text = match self.texts.len() < TEXTS {
            true => Vec::new(),
            false => self.texts.pop_front().map(|(_, text)| text).unwrap_or_default(),
        };
        text.clear();
        text.extend_from_slice(tokens);
        self.texts.push_back((namespace.clone(), text));
    }

    /// Pages are dropped: any match may be shorter.
    pub(super) fn forget(&mut self) {
        self.state += 1;
        self.texts.clear();
    }

    /// The texts that were added since the state of a match; `None` if something else has changed.
    pub(super) fn since(
        &self,
        known: Known,
    ) -> Option<impl Iterator<Item = &(Namespace, Vec<u32>)>> {
        let changes = usize::try_from(self.state - known.state).ok()?;
        let first = self.texts.len().checked_sub(changes)?;
        (known.state > 0).then(|| self.texts.range(first..))
    }

    /// A match of now.
    pub(super) fn known(&self, rows: usize) -> Known {
        Known { state: self.state, rows }
    }
}
