//! The answers to a request: one stream of tokens for each choice, merged.

mod record;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{SelectAll, Stream, StreamExt};

use super::app::Call;
use super::error::ApiError;
use super::metrics::Taken;
use super::models::ModelLease;
use lapwing_engine::Request;
use lapwing_engine::chat::AnswerStart;
use lapwing_engine::parts::{AnswerForm, AnswerReader, Part};
use lapwing_engine::{PromptProgress, Summary, Token, TokenEvent, TokenStream};
use record::{Record, Texts};

pub(crate) use record::Usage;

/// What happens in an answer.
#[derive(Debug)]
pub(crate) enum Item {
    /// More of the prompt of a choice is computed.
    Prompt(usize, PromptProgress),
    /// A choice has a token more.
    Token(usize, Token),
    /// A choice is complete.
    End(usize, Box<Summary>),
    /// The request has failed; nothing follows.
    Failed(ApiError),
}

/// The choices of an answer. Dropping it cancels what is not complete.
pub(crate) struct Answers {
    streams: SelectAll<Choice>,
    interrupt: Pin<Box<dyn Future<Output = ApiError> + Send>>,
    record: Record,
    /// Taken from the streams before they are handed out.
    peeked: Option<Item>,
    /// Ids of each prompt.
    prompts: Vec<Vec<u32>>,
    /// Choices of each prompt.
    choices: usize,
    start: AnswerStart,
    /// Keywords of schemas without effect.
    ignored_keywords: Vec<String>,
}

struct Choice {
    index: usize,
    stream: TokenStream,
    is_done: bool,
}

impl Answers {
    /// Sends the requests of a client to the engine, one for each choice; so many in a row have the same prompt. `user`
    /// is the user that the request names.
    ///
    /// # Errors
    /// When a request is invalid, or the engine has too many.
    pub(crate) async fn start(
        call: Call,
        lease: ModelLease,
        user: Option<String>,
        requests: Vec<Request>,
        choices: usize,
    ) -> Result<Answers, ApiError> {
        let client = call.caller.client(user);
        let permit = call.app.clients.admit(&client)?;
        let metrics = call.app.metrics.begin(lease.name());
        let mut record = Record {
            lease,
            client,
            _permit: permit,
            metrics,
            last: call.received,
            tokens: 0,
            usage: Usage::default(),
            ttft: Duration::ZERO,
            times: Taken::default(),
            open: requests.len(),
            reason: "cancelled",
            texts: call.app.config.log_prompts.then(Texts::default),
            call,
        };
        let mut streams = SelectAll::new();
        let choices = choices.max(1);
        let mut prompts = Vec::new();
        let mut start = AnswerStart::default();
        let mut ignored_keywords = Vec::new();
        for (index, request) in requests.into_iter().enumerate() {
            let request = request.client(&record.client);
            let request = match record.call.timeout {
                Some(timeout) => request.deadline(timeout),
                None => request,
            };
            let stream = record.lease.engine.generate(request).await;
            let stream = stream.map_err(|error| record.fail(error.into()))?;
            if index == 0 {
                start = stream.answer_start();
                ignored_keywords = stream.ignored_keywords().to_vec();
                if let Some(texts) = &mut record.texts {
                    texts.prompt = record.lease.engine.tokenizer().decode(stream.prompt_ids());
                }
            }
            if index % choices == 0 {
                record.usage.prompt += stream.prompt_ids().len();
                prompts.push(stream.prompt_ids().to_vec());
            }
            streams.push(Choice { index, stream, is_done: false });
        }
        let interrupt = Box::pin(record.call.clone().interrupted());
        Ok(Answers {
            streams,
            interrupt,
            record,
            peeked: None,
            prompts,
            choices,
            start,
            ignored_keywords,
        })
    }

    /// Waits a while for the first item, so that an early failure becomes the status of the response.
    ///
    /// # Errors
    /// The failure.
    pub(crate) async fn begun(&mut self) -> Result<(), ApiError> {
        if let Ok(Some(item)) = tokio::time::timeout(PATIENCE, self.next()).await {
            match item {
                Item::Failed(error) => return Err(error),
                item => self.peeked = Some(item),
            }
        }
        Ok(())
    }

    /// The next item; `None` after the end.
    pub(crate) async fn next(&mut self) -> Option<Item> {
        std::future::poll_fn(|cx| self.poll_item(cx)).await
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        if let Some(item) = self.peeked.take() {
            return Poll::Ready(Some(item));
        }
        let item = match self.streams.poll_next_unpin(cx) {
            Poll::Ready(Some(item)) => item,
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => match self.interrupt.as_mut().poll(cx) {
                Poll::Ready(error) => Item::Failed(error),
                Poll::Pending => return Poll::Pending,
            },
        };
        match &item {
            Item::Prompt(..) => {}
            Item::Token(choice, token) => self.record.token(*choice, token),
            Item::End(_, summary) => self.record.end(summary),
            Item::Failed(error) => {
                self.record.fail(error.clone());
                self.streams.clear();
                return Poll::Ready(Some(item));
            }
        }
        Poll::Ready(Some(item))
    }

    /// Ids of the prompt of a choice.
    pub(crate) fn prompt_ids(&self, choice: usize) -> &[u32] {
        self.prompts.get(choice / self.choices).map_or(&[], Vec::as_slice)
    }

    /// Where the text of the answers begins.
    pub(crate) fn start_of_text(&self) -> AnswerStart {
        self.start
    }

    /// Keywords of the request's schemas that have no effect.
    pub(crate) fn ignored_keywords(&self) -> &[String] {
        &self.ignored_keywords
    }

    /// Tokens so far.
    pub(crate) fn usage(&self) -> Usage {
        Usage { generated: self.record.tokens, ..self.record.usage }
    }

    /// What the first choice took.
    pub(crate) fn times(&self) -> Taken {
        self.record.times
    }

    /// The model.
    pub(crate) fn lease(&self) -> &ModelLease {
        &self.record.lease
    }

    /// The HTTP request.
    pub(crate) fn call(&self) -> &Call {
        &self.record.call
    }
}

/// How long a response waits for the first token before its headers are sent.
const PATIENCE: Duration = Duration::from_secs(10);

impl Stream for Choice {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        if self.is_done {
            return Poll::Ready(None);
        }
        let index = self.index;
        match self.stream.poll_next_event(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(TokenEvent::Prompt(progress)))) => {
                Poll::Ready(Some(Item::Prompt(index, progress)))
            }
            Poll::Ready(Some(Ok(TokenEvent::Token(token)))) => {
                Poll::Ready(Some(Item::Token(index, token)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.is_done = true;
                Poll::Ready(Some(Item::Failed(error.into())))
            }
            Poll::Ready(None) => {
                self.is_done = true;
                let summary = self.stream.summary().cloned();
                Poll::Ready(summary.map(|summary| Item::End(index, Box::new(summary))))
            }
        }
    }
}

/// A complete choice.
#[derive(Debug, Default)]
pub(crate) struct Complete {
    /// Its parts.
    pub(crate) parts: Vec<Part>,
    /// Its tokens, without the model's end token.
    pub(crate) tokens: Vec<Token>,
    /// The ids of its tokens, with the model's end token.
    pub(crate) ids: Vec<u32>,
    /// Why and how it ended.
    pub(crate) summary: Option<Box<Summary>>,
}

impl Complete {
    /// Why it ended: `stop` or `length`.
    pub(crate) fn reason(&self) -> &'static str {
        self.summary.as_ref().map_or("stop", |summary| summary.reason.name())
    }
}

impl Answers {
    /// All choices, when they are complete. They have parts of this form.
    ///
    /// # Errors
    /// The failure.
    pub(crate) async fn complete(&mut self, form: &AnswerForm) -> Result<Vec<Complete>, ApiError> {
        let mut texts = vec![String::new(); self.record.open];
        let mut choices: Vec<Complete> = Vec::new();
        choices.resize_with(self.record.open, Complete::default);
        while let Some(item) = self.next().await {
            match item {
                Item::Prompt(..) => {}
                Item::Token(index, token) => {
                    texts[index].push_str(&token.text);
                    choices[index].ids.push(token.id);
                    if !token.is_end {
                        choices[index].tokens.push(token);
                    }
                }
                Item::End(index, summary) => choices[index].summary = Some(summary),
                Item::Failed(error) => return Err(error),
            }
        }
        for (choice, text) in choices.iter_mut().zip(texts) {
            choice.parts = AnswerReader::new(form, self.start).whole(text);
        }
        Ok(choices)
    }
}
