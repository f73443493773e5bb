//! Constraints: which tokens may come next, such as those that a grammar allows.

use std::fmt;

/// A set of token ids, with one bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenMask {
    words: Vec<u32>,
}

impl TokenMask {
    /// The set of the bits of `words`; id `i` is bit `i % 32` of word `i / 32`. Ids beyond the words are not in it.
    pub fn from_words(words: Vec<u32>) -> TokenMask {
        TokenMask { words }
    }

    /// Adds an id.
    pub fn insert(&mut self, id: u32) {
        let word = id as usize / 32;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (id % 32);
    }

    /// Takes an id out.
    pub fn remove(&mut self, id: u32) {
        if let Some(word) = self.words.get_mut(id as usize / 32) {
            *word &= !(1 << (id % 32));
        }
    }

    /// Whether an id is in it.
    pub fn contains(&self, id: u32) -> bool {
        self.words.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
    }

    /// Whether every id of it is one of `ids`.
    pub fn is_within(&self, ids: &[u32]) -> bool {
        let mut distinct = ids.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let common = distinct.into_iter().filter(|id| self.contains(*id)).count();
        self.words.iter().map(|word| word.count_ones() as usize).sum::<usize>() == common
    }

    /// Sets the logits `[vocab]` of all other tokens to −∞.
    pub fn apply(&self, logits: &mut [f32]) {
        for (word, logits) in logits.chunks_mut(32).enumerate() {
            match self.words.get(word).copied().unwrap_or(0) {
                0 => logits.fill(f32::NEG_INFINITY),
                u32::MAX => {}
                bits => {
                    for (bit, logit) in logits.iter_mut().enumerate() {
                        if bits >> bit & 1 == 0 {
                            *logit = f32::NEG_INFINITY;
                        }
                    }
                }
            }
        }
    }
}

impl FromIterator<u32> for TokenMask {
    fn from_iter<T: IntoIterator<Item = u32>>(ids: T) -> TokenMask {
        let mut mask = TokenMask::default();
        ids.into_iter().for_each(|id| mask.insert(id));
        mask
    }
}

/// A constraint on the tokens of one sequence, and its state after the tokens so far.
pub trait Constraint: Send + fmt::Debug {
    /// The tokens that may come next. End tokens are among them where the text may end.
    ///
    /// # Errors
    /// When they cannot be computed, for example because a limit is exceeded. The constraint is then of no
    /// further use.
    fn allowed(&mut self) -> Result<TokenMask, ConstraintError>;

    /// Appends a token, which is an allowed one.
    ///
    /// # Errors
    /// As [`allowed`](Constraint::allowed).
    fn accept(&mut self, id: u32) -> Result<Accepted, ConstraintError>;

    /// A constraint in the same state, which goes on by itself.
    fn fork(&self) -> Box<dyn Constraint>;
}

/// What may follow a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Further tokens, perhaps also the end.
    Open,
    /// Nothing: the text is complete.
    Complete,
}

/// Why a constraint cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ConstraintError {
    /// Reason.
    pub reason: String,
}

/// Computes masks beside the passes of the devices.
pub trait MaskWorker: Send + Sync + fmt::Debug {
    /// Starts computing the mask of a constraint.
    fn start(&self, constraint: Box<dyn Constraint>) -> Box<dyn PendingMask>;
}

/// A mask that is being computed.
pub trait PendingMask: Send + fmt::Debug {
    /// Waits for the mask. The constraint comes back with it.
    ///
    /// # Errors
    /// Those of [`Constraint::allowed`], and when the computation has panicked.
    fn wait(self: Box<Self>) -> Result<(Box<dyn Constraint>, TokenMask), ConstraintError>;
}
