//! How answers are written, whole or as a stream.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::FutureExt;
use futures_util::stream::unfold;
use serde::Serialize;

use super::answer::{Answers, Complete, Item};
use super::error::ApiError;
use lapwing_engine::parts::{AnswerForm, AnswerReader, Part};
use lapwing_engine::{PromptProgress, Summary, Token};

/// Writes an answer as an interface does, whole or as a stream. The methods of a stream append to `out`.
pub(crate) trait Writer: Send + 'static {
    /// The whole answer, of which nothing was streamed.
    fn whole(&mut self, choices: Vec<Complete>, answers: &Answers) -> impl Serialize;

    /// Type of a streamed response.
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// Before the first token.
    fn begin(&mut self, _answers: &Answers, _out: &mut String) {}

    /// More of the prompt of a choice is computed.
    fn prompt(
        &mut self,
        _choice: usize,
        _progress: PromptProgress,
        _answers: &Answers,
        _out: &mut String,
    ) {
    }

    /// A token of a choice.
    fn token(&mut self, _choice: usize, _token: &Token, _answers: &Answers, _out: &mut String) {}

    /// The parts of a choice that its last token has completed, or its end.
    fn parts(&mut self, _choice: usize, _parts: Vec<Part>, _answers: &Answers, _out: &mut String) {}

    /// The end of a choice.
    fn end(&mut self, choice: usize, summary: &Summary, answers: &Answers, out: &mut String);

    /// After the end of all choices.
    fn finish(&mut self, _answers: &Answers, _out: &mut String) {}

    /// A failure, in place of what would follow.
    fn failed(&mut self, error: &ApiError, out: &mut String);

    /// What keeps a connection open while nothing happens: an event stream's comment.
    fn keep_alive(&self) -> &'static str {
        ":\n\n"
    }
}

/// Time without tokens after which a sign of life is sent.
const QUIET: Duration = Duration::from_secs(15);

struct State<W> {
    answers: Answers,
    form: AnswerForm,
    /// Readers of the choices that have begun.
    readers: Vec<AnswerReader>,
    writer: W,
    is_begun: bool,
    is_ended: bool,
}

/// The response that streams `answers`, which have parts of this form. If it is dropped, as when the client
/// disconnects, the request is cancelled.
pub(crate) fn stream(answers: Answers, form: AnswerForm, writer: impl Writer) -> Response {
    let content_type = writer.content_type();
    let readers = Vec::new();
    let state = State { answers, form, readers, writer, is_begun: false, is_ended: false };
    let stream = unfold(state, |mut state| async move {
        let text = state.next_text().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), state))
    });
    let mut response = Response::new(Body::from_stream(stream));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies such as nginx would collect the stream otherwise.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl<W: Writer> State<W> {
    /// The next part of the body: all that has happened since the last one.
    async fn next_text(&mut self) -> Option<String> {
        let mut text = String::new();
        if !self.is_begun {
            self.is_begun = true;
            self.writer.begin(&self.answers, &mut text);
        }
        if self.is_ended {
            return None;
        }
        while text.is_empty() {
            let item = match tokio::time::timeout(QUIET, self.answers.next()).await {
                Ok(item) => item,
                Err(_) => {
                    text.push_str(self.writer.keep_alive());
                    continue;
                }
            };
            self.write(item, &mut text);
            if self.is_ended {
                return Some(text);
            }
        }
        while !self.is_ended {
            match self.answers.next().now_or_never() {
                Some(item) => self.write(item, &mut text),
                None => break,
            }
        }
        Some(text)
    }

    fn reader(&mut self, choice: usize) -> &mut AnswerReader {
        let start = self.answers.start_of_text();
        while self.readers.len() <= choice {
            self.readers.push(AnswerReader::new(&self.form, start));
        }
        &mut self.readers[choice]
    }

    fn write(&mut self, item: Option<Item>, out: &mut String) {
        match item {
            Some(Item::Prompt(choice, progress)) => {
                self.writer.prompt(choice, progress, &self.answers, out);
            }
            Some(Item::Token(choice, token)) => {
                self.writer.token(choice, &token, &self.answers, out);
                let parts = self.reader(choice).push(token.text);
                self.writer.parts(choice, parts, &self.answers, out);
            }
            Some(Item::End(choice, summary)) => {
                let parts = self.reader(choice).finish();
                self.writer.parts(choice, parts, &self.answers, out);
                self.writer.end(choice, &summary, &self.answers, out);
            }
            Some(Item::Failed(error)) => {
                self.writer.failed(&error, out);
                self.is_ended = true;
            }
            None => {
                self.writer.finish(&self.answers, out);
                self.is_ended = true;
            }
        }
    }
}

/// Appends an event with JSON as its data.
pub(crate) fn event(data: &impl Serialize, out: &mut String) {
    out.push_str("data: ");
    json(data, out);
    out.push_str("\n\n");
}

/// Appends JSON as a line.
pub(crate) fn line(data: &impl Serialize, out: &mut String) {
    json(data, out);
    out.push('\n');
}

/// Appends an event that has a name.
pub(crate) fn named_event(name: &str, data: &impl Serialize, out: &mut String) {
    out.push_str("event: ");
    out.push_str(name);
    out.push('\n');
    event(data, out);
}

/// Appends JSON.
pub(crate) fn json(data: &impl Serialize, out: &mut String) {
    // The types of this module have no keys or numbers that JSON lacks.
    if let Ok(text) = serde_json::to_string(data) {
        out.push_str(&text);
    }
}
