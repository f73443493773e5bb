//! Tokens, and reports of the prompt before them.

use std::task::{Context, Poll};

use lapwing_actors::message::{PromptProgress, StreamEvent};
use lapwing_traces::Nanos;

use super::{Token, TokenStream};
use crate::error::Error;

/// What a stream reports.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenEvent {
    /// More of the prompt is computed; only before the first token, and only of a request that asks for it
    /// ([`Request::prompt_progress`](crate::Request::prompt_progress)).
    Prompt(PromptProgress),
    /// A token.
    Token(Token),
}

/// Reports of the prompt that the stream has passed on, and what waits behind one.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// The latest one, and when it was passed on.
    latest: Option<(PromptProgress, Nanos)>,
    /// The first token, behind the report that the prompt is complete.
    held: Option<StreamEvent>,
}

impl Reports {
    /// An event that waits.
    pub(super) fn take_held(&mut self) -> Option<StreamEvent> {
        self.held.take()
    }

    /// The report that the prompt is complete, if an earlier one said that it is not.
    fn last(&mut self, now: Nanos) -> Option<PromptProgress> {
        let (latest, at) = self.latest.take()?;
        let elapsed = latest.elapsed + now.since(at);
        let PromptProgress { tokens, computed, .. } = latest;
        (computed < tokens).then_some(PromptProgress { computed: tokens, elapsed, ..latest })
    }
}

impl TokenStream {
    /// The next token, or how much of the prompt is computed; `None` after the last token. The last report says that all
    /// of the prompt is computed, and precedes the first token.
    pub async fn next_event(&mut self) -> Option<Result<TokenEvent, Error>> {
        std::future::poll_fn(|cx| self.poll_next_event(cx)).await
    }

    /// As [`next_event`](TokenStream::next_event), for the implementation of other streams.
    pub fn poll_next_event(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<TokenEvent, Error>>> {
        loop {
            let Some(events) = &mut self.events else { return Poll::Ready(None) };
            let event = match self.reports.take_held() {
                Some(event) => event,
                None => match events.poll_next(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(event) => event,
                },
            };
            if let StreamEvent::Prompt(progress) = event {
                // A report of the last chunk may follow the first token, which another actor sends.
                if self.times.generated_tokens > 0 {
                    continue;
                }
                self.reports.latest = Some((progress, self.clock.now()));
                return Poll::Ready(Some(Ok(TokenEvent::Prompt(progress))));
            }
            if matches!(event, StreamEvent::Token(_))
                && let Some(last) = self.reports.last(self.clock.now())
            {
                self.reports.held = Some(event);
                return Poll::Ready(Some(Ok(TokenEvent::Prompt(last))));
            }
            let token = self.on_event(event);
            return Poll::Ready(token.map(|token| token.map(TokenEvent::Token)));
        }
    }
}
