//! When the generation of a request ends.

use super::Request;
#[cfg(feature = "structured")]
use crate::structured::Grammar;

impl Request {
    /// Generates at most `tokens` new tokens.
    #[must_use]
    pub fn max_tokens(mut self, tokens: usize) -> Request {
        self.max_tokens = Some(tokens);
        self
    }

    /// Forbids the model's end tokens for the first `tokens` new tokens; the default is 0. Only end tokens are
    /// forbidden: a stop text ends the generation at any time, and so do
    /// [`max_tokens`](Request::max_tokens) and a grammar whose text is complete.
    #[must_use]
    pub fn min_tokens(mut self, tokens: usize) -> Request {
        self.min_tokens = tokens;
        self
    }

    /// Ends the generation when `text` appears; the text itself is not part of the output.
    #[must_use]
    pub fn stop(mut self, text: impl Into<String>) -> Request {
        self.stop.push(text.into());
        self
    }

    /// Samples only tokens that the grammar allows; the answer ends where its text is complete. A stop text ends
    /// it earlier, and [`max_tokens`](Request::max_tokens) may cut it: [`Summary::reason`](crate::Summary::reason)
    /// says so. Log-probabilities remain those of the model without grammar. A grammar and
    /// [`ignore_eos`](Request::ignore_eos) contradict each other.
    #[cfg(feature = "structured")]
    #[must_use]
    pub fn grammar(mut self, grammar: Grammar) -> Request {
        self.grammar = Some(grammar);
        self
    }

    /// Continues past the model's end tokens.
    #[must_use]
    pub fn ignore_eos(mut self) -> Request {
        self.ignore_eos = true;
        self
    }
}
