//! The answer to a request, as Dynamo gets it: token ids as they come, and one last item.

use dynamo_backend_common::engine::{LogProbs, TopLogprob, TopLogprobs};
use dynamo_backend_common::{
    CompletionUsage, DynamoError, FinishReason, GenerateContext, LLMEngineOutput,
    PromptTokensDetails, usage,
};
use futures::FutureExt;
use futures::stream::{self, BoxStream, StreamExt};
use lapwing_engine::{EndReason, Token, TokenEvent, TokenStream};

use crate::asked::Asked;
use crate::fault;

/// Most tokens of an item, of those that are there at the same time.
const TOKENS_MAX: usize = 32;

/// An item of an answer.
type Item = Result<LLMEngineOutput, DynamoError>;

/// An answer that is being generated. Dropping it cancels the request, whose pages are then free.
pub(crate) struct Answer {
    tokens: TokenStream,
    asked: Asked,
    context: GenerateContext,
    counts: Counts,
}

/// Tokens of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    prompt: usize,
    /// Those of the prompt that the prefix cache had.
    cached: usize,
    generated: usize,
}

impl Counts {
    fn usage(self) -> CompletionUsage {
        let number = |tokens| u32::try_from(tokens).unwrap_or(u32::MAX);
        let details = PromptTokensDetails {
            cached_tokens: Some(number(self.cached)),
            ..PromptTokensDetails::default()
        };
        CompletionUsage {
            prompt_tokens_details: Some(details),
            ..usage(number(self.prompt), number(self.generated))
        }
    }
}

impl Answer {
    /// An answer of which nothing has come, to a request whose prompt the engine has.
    pub(crate) fn new(tokens: TokenStream, asked: Asked, context: GenerateContext) -> Answer {
        let counts = Counts { prompt: tokens.prompt_ids().len(), ..Counts::default() };
        Answer { tokens, asked, context, counts }
    }

    /// The items, of which the last one has a reason or is an error.
    pub(crate) fn stream(self) -> BoxStream<'static, Item> {
        let items = stream::unfold(Some(self), |answer| async move {
            let mut answer = answer?;
            let item = answer.next().await;
            let goes_on = item.as_ref().is_ok_and(|item| item.finish_reason.is_none());
            Some((item, goes_on.then_some(answer)))
        });
        items.boxed()
    }

    async fn next(&mut self) -> Item {
        loop {
            let event = tokio::select! {
                biased;
                () = self.context.stopped() => {
                    return Ok(self.last(LLMEngineOutput::default(), FinishReason::Cancelled));
                }
                event = self.tokens.next_event() => event,
            };
            match event {
                Some(Ok(TokenEvent::Prompt(progress))) => self.counts.cached = progress.cached,
                Some(Ok(TokenEvent::Token(token))) => return self.item(token).await,
                Some(Err(error)) => return Err(fault::of(&error)),
                None => return Ok(self.complete(LLMEngineOutput::default())),
            }
        }
    }

    /// An item of a token and those that are there behind it.
    async fn item(&mut self, first: Token) -> Item {
        let mut item = LLMEngineOutput::default();
        let mut token = first;
        loop {
            self.counts.generated += 1;
            let (id, is_end) = (token.id, token.is_end);
            self.add(&mut item, token);
            if !is_end && self.asked.stops.end(id, self.counts.generated) {
                return Ok(self.last(item, FinishReason::Stop));
            }
            // The last token and the reason are one item, which saves a message.
            let next = match is_end || self.asked.tokens_max == Some(self.counts.generated) {
                true => Some(self.tokens.next().await),
                false if item.token_ids.len() >= TOKENS_MAX => None,
                false => self.tokens.next().now_or_never(),
            };
            token = match next {
                None => return Ok(item),
                Some(None) => return Ok(self.complete(item)),
                Some(Some(Ok(token))) => token,
                Some(Some(Err(error))) => return Err(fault::of(&error)),
            };
        }
    }

    fn add(&self, item: &mut LLMEngineOutput, token: Token) {
        item.token_ids.push(token.id);
        if !self.asked.logprobs {
            return;
        }
        let likely = (1..).zip(&token.top_logprobs).map(|(rank, likely)| TopLogprob {
            rank,
            token_id: likely.id,
            // The frontend has the texts of ids.
            token: None,
            logprob: f64::from(likely.logprob),
            bytes: None,
        });
        let chosen: &mut LogProbs = item.log_probs.get_or_insert_default();
        chosen.push(f64::from(token.logprob));
        let all: &mut TopLogprobs = item.top_logprobs.get_or_insert_default();
        all.push(likely.collect());
    }

    /// The last item of an answer that the engine has completed.
    fn complete(&self, item: LLMEngineOutput) -> LLMEngineOutput {
        let reason = match self.tokens.summary().map(|summary| &summary.reason) {
            Some(EndReason::EndToken) => FinishReason::EoS,
            Some(EndReason::Length) => FinishReason::Length,
            // Requests have no stop texts, and a stream without a summary has ended with an error.
            _ => FinishReason::Stop,
        };
        self.last(item, reason)
    }

    fn last(&self, item: LLMEngineOutput, reason: FinishReason) -> LLMEngineOutput {
        let completion_usage = Some(self.counts.usage());
        LLMEngineOutput { finish_reason: Some(reason), completion_usage, ..item }
    }
}
