//! Drafts: tokens proposed to follow a sequence, and verified by the model in one pass.
//!
//! A decode step computes the row of the latest token and a row per drafted token. Each row's logits give
//! the token that the model itself chooses there. The drafted tokens count as long as they equal the
//! chosen ones, so the output is the same tokens as without a draft, greedy or sampled with the same
//! seed. Rows of rejected tokens are rolled back.

use std::fmt;

use crate::sample::Sampled;

/// Proposes the tokens after a sequence.
pub trait Drafter: Send + Sync + fmt::Debug {
    /// At most `most` tokens that may follow `ids` (prompt and generated tokens). Called after each step
    /// of generation, on the scheduler's thread, so it has to be quick. No token means a step without a
    /// draft. A proposal ends before the first id outside the vocabulary.
    fn draft(&mut self, ids: &[u32], most: usize) -> Vec<u32>;
}

/// The tokens of one step of generation: those of the draft that the model chose, too, and one more.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTokens {
    /// The first token.
    pub first: Sampled,
    /// The tokens after it; none without a draft.
    pub more: Vec<Sampled>,
}

impl StepTokens {
    /// The tokens in order.
    pub fn iter(&self) -> impl Iterator<Item = &Sampled> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// The last token.
    pub fn last(&self) -> &Sampled {
        self.more.last().unwrap_or(&self.first)
    }
}
