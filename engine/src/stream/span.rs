//! What the span of a request is told as its tokens arrive.

use lapwing_actors::message::FinishReason;

use super::{EndReason, TokenStream};
use crate::span::RequestSpan;

impl TokenStream {
    /// With the span of its request.
    pub(crate) fn within(mut self, span: RequestSpan) -> TokenStream {
        self.span = span;
        self.span.reach(&self.times);
        self
    }

    /// Counts a token. If no other follows, a caller who drops the stream now has the whole answer.
    pub(super) fn count_token(&mut self, finish: Option<FinishReason>) {
        let now = self.clock.now();
        if self.times.generated_tokens == 0 {
            self.times.first_token = now;
        }
        self.times.finished = now;
        self.times.generated_tokens += 1;
        self.span.reach(&self.times);
        if let Some(finish) = finish {
            self.span.complete(EndReason::of(finish).name());
        }
    }
}
