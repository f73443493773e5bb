//! A compiled grammar and its state after the tokens of an answer.

use std::fmt;

use lapwing_actors::sample::{Accepted, Constraint, ConstraintError, TokenMask};
use llguidance::Matcher;
use llguidance::api::StopReason;

/// Characters of the longest error message; the library quotes the grammar.
const CHARS_MAX: usize = 500;

/// The state of a grammar after some tokens.
pub(super) struct GrammarState {
    matcher: Matcher,
}

impl GrammarState {
    /// The state before the first token.
    pub(super) fn new(matcher: Matcher) -> GrammarState {
        GrammarState { matcher }
    }
}

fn failed(error: &impl fmt::Display) -> ConstraintError {
    let mut reason = message(error);
    if reason == StopReason::NoExtensionBias.to_string() {
        reason = "no token of the model's vocabulary continues the text".to_owned();
    }
    ConstraintError { reason }
}

impl Constraint for GrammarState {
    fn allowed(&mut self) -> Result<TokenMask, ConstraintError> {
        match self.matcher.compute_mask_or_eos() {
            Ok(mask) => Ok(TokenMask::from_words(mask.into())),
            Err(error) => Err(failed(&error)),
        }
    }

    fn accept(&mut self, id: u32) -> Result<Accepted, ConstraintError> {
        match self.matcher.consume_token(id) {
            Ok(()) if self.matcher.is_stopped() => Ok(Accepted::Complete),
            Ok(()) => Ok(Accepted::Open),
            Err(error) => Err(failed(&error)),
        }
    }

    fn fork(&self) -> Box<dyn Constraint> {
        Box::new(GrammarState { matcher: self.matcher.clone() })
    }
}

impl fmt::Debug for GrammarState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.matcher.stop_reason();
        f.debug_struct("GrammarState").field("state", &state).finish_non_exhaustive()
    }
}

/// An error message without the dumps that follow it, and not too long.
pub(super) fn message(error: &impl fmt::Display) -> String {
    let text = format!("{error:#}");
    let text = text.split("\n<").next().unwrap_or_default().trim();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
