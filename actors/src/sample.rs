//! Choosing the next token from logits: numbers only, no text.

mod acceptance;
mod candidates;
mod constrained;
mod constraint;
mod params;
mod sampler;
#[cfg(test)]
mod tests;

use candidates::Candidates;
pub use constraint::{Accepted, Constraint, ConstraintError, MaskWorker, PendingMask, TokenMask};
pub use lapwing_kernels::cpu::logprob;
pub use params::{SamplingError, SamplingParams};
pub use sampler::Sampler;

use crate::finish::FinishReason;

/// A token id and how likely it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenLogprob {
    /// Token id.
    pub id: u32,
    /// Natural logarithm of its probability under the model, before any sampling step.
    pub logprob: f32,
}

/// A chosen token.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// Token id.
    pub id: u32,
    /// Natural logarithm of its probability under the model, before any sampling step.
    pub logprob: f32,
    /// The most likely tokens at its position, most likely first, as many as
    /// [`Sampler::with_top_logprobs`] asks for.
    pub top: Vec<TokenLogprob>,
    /// Set on the last token of a sequence.
    pub finish: Option<FinishReason>,
}

/// Why no token can be chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// Every logit is NaN, or every token is forbidden.
    #[error("every logit is NaN, or every token is forbidden")]
    NoToken,
    /// Every token that the constraint allows is forbidden otherwise, or its logit is NaN.
    #[error(
        "every token that the grammar allows is forbidden by other settings, or its logit is NaN"
    )]
    NoAllowedToken,
    /// The constraint cannot go on.
    #[error(transparent)]
    Constraint(#[from] ConstraintError),
}

/// A token of a prompt, given the tokens before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Token id.
    pub id: u32,
    /// Natural logarithm of its probability under the model.
    pub logprob: f32,
    /// The most likely tokens at its position, most likely first, as many as were asked for.
    pub top: Vec<TokenLogprob>,
}

impl Scored {
    /// Scores token `id` with the logits `[vocab]` of its position, beside the `top` most likely tokens.
    pub fn of(logits: &[f32], id: u32, top: usize) -> Scored {
        let known = TokenLogprob { id, logprob: logprob(logits, id) };
        let top = Candidates::default().top(logits, top, known);
        Scored { id, logprob: known.logprob, top }
    }
}
