//! The stream of generated tokens.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use lapwing_actors::draft::DraftStats;
use lapwing_actors::drive::live::Events;
use lapwing_actors::message::{FinishReason, StreamEvent};
use lapwing_actors::sample::{Sampled, TokenLogprob};
use lapwing_traces::{Clock, RequestTimes};

use crate::chat::AnswerStart;
use crate::error::Error;
#[cfg(feature = "structured")]
use crate::parts::Part;
use crate::span::RequestSpan;
use crate::stop::StopSearch;
use crate::tokenizer::Detokenizer;
#[cfg(feature = "structured")]
use divider::Divider;
use events::Reports;

mod blocking;
#[cfg(feature = "structured")]
mod divider;
mod events;
mod span;
mod summary;

pub use blocking::BlockingTokens;
pub use events::TokenEvent;
pub use lapwing_actors::message::PromptProgress;
pub use summary::{EndReason, Summary};

/// A generated token.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Token {
    /// Token id.
    pub id: u32,
    /// Text completed by this token. It lags behind the ids while a character or a possible stop text
    /// is incomplete, and catches up at the latest at the end.
    /// A token may complete no text, or several characters at once.
    pub text: String,
    /// Natural logarithm of the token's probability under the model.
    pub logprob: f32,
    /// The most likely tokens at this position, most likely first, as many as
    /// [`Request::top_logprobs`](crate::Request::top_logprobs) asks for.
    pub top_logprobs: Vec<TokenLogprob>,
    /// Whether this is the model's end token, which has no text.
    pub is_end: bool,
    /// Parts of the answer that this token completes, if the request has the answer divided
    /// ([`Request::divided`](crate::Request::divided)). The last token also has what was held back.
    #[cfg(feature = "structured")]
    pub parts: Vec<Part>,
}

/// Generated tokens, as they are sampled. Dropping the stream cancels the request.
///
/// It is a [`Stream`] of `Result<Token, Error>`; [`next`](TokenStream::next) needs no
/// extension trait. An error is the last item. The combinators of a library work on it as well:
///
/// ```no_run
/// use futures_util::TryStreamExt;
/// use lapwing::{Engine, Request};
///
/// # async fn example(engine: Engine) -> Result<(), lapwing::Error> {
/// let tokens = engine.generate(Request::ask("Why is the sky blue?").max_tokens(64)).await?;
/// let text: String = tokens.map_ok(|token| token.text).try_collect().await?;
/// println!("{text}");
/// # Ok(())
/// # }
/// ```
pub struct TokenStream {
    events: Option<Events>,
    reports: Reports,
    detokenizer: Option<Detokenizer>,
    stop: StopSearch,
    prompt_ids: Vec<u32>,
    start: AnswerStart,
    seed: u64,
    clock: Arc<dyn Clock>,
    /// Measured at this end, until the engine's own times arrive with the last event.
    times: RequestTimes,
    drafts: Option<DraftStats>,
    summary: Option<Summary>,
    ignored_keywords: Arc<[String]>,
    /// After the events, which the engine must know to be dropped before the span can end.
    span: RequestSpan,
    #[cfg(feature = "structured")]
    divider: Divider,
}

/// Arguments for the construction of a stream.
pub(crate) struct StreamParts {
    pub(crate) events: Events,
    pub(crate) detokenizer: Detokenizer,
    pub(crate) stop: Vec<String>,
    pub(crate) prompt_ids: Vec<u32>,
    pub(crate) start: AnswerStart,
    pub(crate) seed: u64,
    pub(crate) clock: Arc<dyn Clock>,
}

impl TokenStream {
    pub(crate) fn new(parts: StreamParts) -> TokenStream {
        let prompt_tokens = parts.prompt_ids.len();
        TokenStream {
            events: Some(parts.events),
            reports: Reports::default(),
            detokenizer: Some(parts.detokenizer),
            stop: StopSearch::new(parts.stop),
            prompt_ids: parts.prompt_ids,
            start: parts.start,
            seed: parts.seed,
            times: RequestTimes {
                submitted: parts.clock.now(),
                admitted: parts.clock.now(),
                prompt_tokens,
                ..RequestTimes::default()
            },
            clock: parts.clock,
            drafts: None,
            summary: None,
            ignored_keywords: Arc::default(),
            span: RequestSpan::default(),
            #[cfg(feature = "structured")]
            divider: Divider::default(),
        }
    }

    /// With the keywords of its grammar's schemas that have no effect.
    #[cfg(feature = "structured")]
    pub(crate) fn ignoring(self, ignored_keywords: Arc<[String]>) -> TokenStream {
        TokenStream { ignored_keywords, ..self }
    }

    /// Keywords of the request's JSON schemas that have no effect on the answer, as pointers such as
    /// `schema/properties/tags/uniqueItems`. They only narrow what is valid: an answer may violate them.
    pub fn ignored_keywords(&self) -> &[String] {
        &self.ignored_keywords
    }

    /// Token ids of the prompt.
    pub fn prompt_ids(&self) -> &[u32] {
        &self.prompt_ids
    }

    /// Where the answer begins.
    pub fn answer_start(&self) -> AnswerStart {
        self.start
    }

    /// Seed of the sampler, drawn by the engine if the request has none.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Result of the generation; `None` before the last item, and after an error.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The tokens that are still to come, as an iterator that blocks the calling thread. Do not
    /// call it on a thread of an async runtime.
    pub fn blocking(&mut self) -> BlockingTokens<'_> {
        BlockingTokens { stream: self }
    }

    /// The next token; `None` after the last one.
    pub async fn next(&mut self) -> Option<Result<Token, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// The whole generated text. It does not say whether a limit has cut it: that is in the [`Summary`], which a program has
    /// after it has called [`next`](TokenStream::next) up to the end.
    ///
    /// # Errors
    /// When the generation fails; the tokens generated before are lost.
    pub async fn into_text(mut self) -> Result<String, Error> {
        let mut text = String::new();
        while let Some(token) = self.next().await {
            text.push_str(&token?.text);
        }
        Ok(text)
    }

    fn on_token(&mut self, sampled: Sampled) -> Token {
        self.count_token(sampled.finish);
        // A grammar may end the answer with a token that has a text.
        let is_end_token = |detokenizer: &Detokenizer| detokenizer.is_end(sampled.id);
        let is_end = sampled.finish == Some(FinishReason::Stop)
            && self.detokenizer.as_ref().is_none_or(is_end_token);
        let mut fresh = String::new();
        if let Some(detokenizer) = &mut self.detokenizer
            && !is_end
        {
            fresh = detokenizer.push(sampled.id);
        }
        if sampled.finish.is_some()
            && let Some(detokenizer) = self.detokenizer.take()
        {
            fresh.push_str(&detokenizer.finish());
        }
        let (mut text, found) = self.stop.push(&fresh);
        if found.is_none() && sampled.finish.is_some() {
            text.push_str(&self.stop.rest());
        }
        #[cfg(feature = "structured")]
        let parts = self.divider.push(&text, found.is_some() || sampled.finish.is_some());
        if let Some(stop) = found {
            self.end(EndReason::StopText(stop));
        }
        let Sampled { id, logprob, top: top_logprobs, .. } = sampled;
        Token {
            id,
            text,
            logprob,
            top_logprobs,
            is_end,
            #[cfg(feature = "structured")]
            parts,
        }
    }

    fn end(&mut self, reason: EndReason) {
        self.events = None;
        self.span.end(reason.name(), &self.times);
        let drafts = self.drafts.take();
        self.summary = Some(Summary {
            #[cfg(feature = "structured")]
            answer: self.divider.answer(reason.clone()),
            reason,
            times: self.times,
            seed: self.seed,
            drafts,
        });
    }

    fn on_event(&mut self, event: StreamEvent) -> Option<Result<Token, Error>> {
        match event {
            StreamEvent::Token(sampled) => Some(Ok(self.on_token(sampled))),
            StreamEvent::Finished(finished) => {
                self.times = finished.times;
                self.drafts = finished.drafts;
                self.end(EndReason::of(finished.reason));
                None
            }
            StreamEvent::Failed(error) => {
                self.events = None;
                Some(Err(self.span.fail(Error::from(error))))
            }
            StreamEvent::Prompt(_) | StreamEvent::Scores(_) | StreamEvent::Hidden(_) => {
                self.events = None;
                Some(Err(self.span.fail(Error::unexpected("a generation"))))
            }
        }
    }
}

impl fmt::Debug for TokenStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenStream")
            .field("prompt_tokens", &self.prompt_ids.len())
            .field("times", &self.times)
            .field("summary", &self.summary)
            .finish_non_exhaustive()
    }
}

impl Stream for TokenStream {
    type Item = Result<Token, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            return match self.poll_next_event(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Some(Ok(TokenEvent::Prompt(_)))) => continue,
                Poll::Ready(Some(Ok(TokenEvent::Token(token)))) => Poll::Ready(Some(Ok(token))),
                Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => Poll::Ready(None),
            };
        }
    }
}
