//! What a request reports beside its tokens.

use super::Request;

impl Request {
    /// Reports with each token the `count` most likely ones at its position and their
    /// log-probabilities ([`Token::top_logprobs`](crate::Token::top_logprobs)). The default is 0.
    #[must_use]
    pub fn top_logprobs(mut self, count: usize) -> Request {
        self.top_logprobs = count;
        self
    }

    /// Reports how much of the prompt is computed, when the request is admitted and after each chunk of the prompt
    /// ([`TokenStream::next_event`](crate::TokenStream::next_event)); by default it does not.
    #[must_use]
    pub fn prompt_progress(mut self, on: bool) -> Request {
        self.prompt_progress = on;
        self
    }

    /// Marks the request for a recorder whose scope is marked requests only
    /// ([`Scope::Marked`](lapwing_traces::Scope::Marked)).
    #[must_use]
    pub fn traced(mut self) -> Request {
        self.traced = true;
        self
    }
}
