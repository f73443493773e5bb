//! `POST /v1/chat/completions`.

use axum::Json;
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};

use super::logprobs::{LogprobsJson, TOP_MAX};
use super::{Head, StreamOptions, TimingsJson, UsageJson, messages};
use crate::request::Request;
use crate::serve::answer::{Answers, Complete};
use crate::serve::app::Call;
use crate::serve::constraint;
use crate::serve::error::{ApiError, Dialect};
use crate::serve::fields::Fields;
use crate::serve::gate::{JsonBody, name_ignored};
use crate::serve::models::ModelLease;
use crate::serve::sampling;
use crate::serve::streaming::{Writer, event, stream};
use crate::serve::tools::{CallReader, Part, Style, ToolCall, Tools};
use crate::stream::{Summary, Token};

/// Fields that clients send and that need no action here.
const SILENT: [&str; 8] = [
    "store",
    "metadata",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "parallel_tool_calls",
    "modalities",
    "reasoning_effort",
];

/// What the answer is to contain.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    stream: StreamOptions,
    logprobs: bool,
    /// How the model writes calls of functions; `None` if there are none.
    calls: Option<Style>,
}

/// Answers a conversation.
pub(crate) async fn chat(Extension(call): Extension<Call>, JsonBody(fields): JsonBody) -> Response {
    let dialect = call.dialect();
    answer(call, fields).await.unwrap_or_else(|error| error.response(dialect))
}

async fn answer(call: Call, mut fields: Fields) -> Result<Response, ApiError> {
    let name: Option<String> = fields.take("model")?;
    let lease = call.model(name.as_deref(), None).await?;
    let (requests, wanted, user) = read(&mut fields, &lease)?;
    fields.drop_all(&SILENT);
    let ignored = fields.rest();
    let client = call.caller.client(user);
    let permit = call.app.clients.admit(&client)?;
    let requests: Vec<Request> =
        requests.into_iter().map(|request| request.client(&client)).collect();
    let n = requests.len();
    let mut answers = Answers::start(call.clone(), lease, (client, permit), (requests, n)).await?;
    let mut response = if wanted.stream.stream {
        answers.begun().await?;
        let head = Head::new("chatcmpl-", "chat.completion.chunk", &answers);
        stream(answers, ChatWriter { head, wanted, choices: Vec::new() })
    } else {
        let head = Head::new("chatcmpl-", "chat.completion", &answers);
        let complete = answers.complete().await?;
        Json(Whole::new(head, wanted, complete, &answers)).into_response()
    };
    name_ignored(&call, &mut response, &ignored);
    Ok(response)
}

/// The requests of the choices, what the answer is to contain, and the user that it names.
fn read(
    fields: &mut Fields,
    lease: &ModelLease,
) -> Result<(Vec<Request>, Wanted, Option<String>), ApiError> {
    let template = lease.engine.chat_template();
    let sent: Vec<Map<String, Value>> = fields.need("messages")?;
    let mut messages = messages::read(sent)?;
    let tools = Tools::new(fields.take("tools")?, fields.take("tool_choice")?, template)?;
    let told = tools.as_ref().and_then(|tools| tools.tell(&mut messages, template));
    let mut request = Request::chat(messages);
    if let Some(tools) = told {
        request = request.template_variable("tools", tools);
    }
    for (name, value) in
        fields.take::<Map<String, Value>>("chat_template_kwargs")?.unwrap_or_default()
    {
        request = request.template_variable(name, value);
    }
    let mut request = sampling::apply(fields, lease.spec(), request)?;
    request.max_tokens = sampling::max_tokens(fields)?;
    let logprobs = fields.take("logprobs")?.unwrap_or(false);
    let top: Option<usize> = fields.take("top_logprobs")?;
    if top.is_some_and(|top| top > TOP_MAX) {
        return Err(ApiError::field(
            "top_logprobs",
            format!("top_logprobs must be at most {TOP_MAX}"),
        ));
    }
    request.top_logprobs = if logprobs { top.unwrap_or(0) } else { 0 };
    let request = constraint::apply(fields, tools.as_ref(), request)?;
    let requests = sampling::choices(request, fields.take("n")?)?;
    let calls = tools.map(|tools| tools.style);
    let wanted = Wanted { stream: StreamOptions::take(fields)?, logprobs, calls };
    Ok((requests, wanted, fields.take("user")?))
}

/// A whole answer.
#[derive(Serialize)]
struct Whole {
    #[serde(flatten)]
    head: Head,
    choices: Vec<WholeChoice>,
    usage: UsageJson,
    timings: TimingsJson,
}

#[derive(Serialize)]
struct WholeChoice {
    index: usize,
    message: WholeMessage,
    logprobs: Option<LogprobsJson>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct WholeMessage {
    role: &'static str,
    content: Option<String>,
    refusal: Option<()>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
}

impl Whole {
    fn new(head: Head, wanted: Wanted, complete: Vec<Complete>, answers: &Answers) -> Whole {
        let tokenizer = answers.lease().engine.tokenizer();
        let choice = |(index, choice): (usize, Complete)| {
            let finish = choice.reason();
            let logprobs = wanted.logprobs.then(|| LogprobsJson::of(&choice.tokens, tokenizer));
            let (content, tool_calls) = match wanted.calls {
                Some(style) => separate(style, &choice.text),
                None => (choice.text, Vec::new()),
            };
            let finish_reason = if tool_calls.is_empty() { finish } else { "tool_calls" };
            let content = (!content.is_empty() || tool_calls.is_empty()).then_some(content);
            let message = WholeMessage { role: "assistant", content, refusal: None, tool_calls };
            WholeChoice { index, message, logprobs, finish_reason }
        };
        let choices = complete.into_iter().enumerate().map(choice).collect();
        Whole { head, choices, usage: answers.usage().into(), timings: TimingsJson::of(answers) }
    }
}

/// The text and the calls of a complete answer.
pub(crate) fn separate(style: Style, text: &str) -> (String, Vec<ToolCall>) {
    let mut reader = CallReader::new(style);
    let mut parts = reader.push(text);
    parts.extend(reader.finish());
    let (mut content, mut calls) = (String::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(text) => content.push_str(&text),
            Part::Call(call) => calls.push(call),
        }
    }
    (content, calls)
}

/// Writes a streamed answer.
struct ChatWriter {
    head: Head,
    wanted: Wanted,
    choices: Vec<ChoiceState>,
}

#[derive(Default)]
struct ChoiceState {
    reader: Option<CallReader>,
    calls: usize,
}

#[derive(Serialize)]
struct Chunk<'a> {
    #[serde(flatten)]
    head: &'a Head,
    choices: &'a [ChunkChoice],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<TimingsJson>,
}

#[derive(Serialize)]
struct ChunkChoice {
    index: usize,
    delta: Delta,
    logprobs: Option<LogprobsJson>,
    finish_reason: Option<&'static str>,
}

#[derive(Default, Serialize)]
struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallDelta>,
}

#[derive(Serialize)]
struct CallDelta {
    index: usize,
    #[serde(flatten)]
    call: ToolCall,
}

impl ChatWriter {
    fn chunk(&self, choice: ChunkChoice, answers: &Answers, out: &mut String) {
        let usage = self.wanted.stream.continuous_usage.then(|| answers.usage().into());
        event(&Chunk { head: &self.head, choices: &[choice], usage, timings: None }, out);
    }

    /// The choice's state; a chunk with the role precedes its first part.
    fn state(&mut self, index: usize, answers: &Answers, out: &mut String) -> &mut ChoiceState {
        while self.choices.len() <= index {
            let index = self.choices.len();
            let reader = self.wanted.calls.map(CallReader::new);
            self.choices.push(ChoiceState { reader, calls: 0 });
            let delta = Delta {
                role: Some("assistant"),
                content: Some(String::new()),
                tool_calls: Vec::new(),
            };
            let choice = ChunkChoice { index, delta, logprobs: None, finish_reason: None };
            self.chunk(choice, answers, out);
        }
        &mut self.choices[index]
    }

    fn parts(&mut self, index: usize, parts: Vec<Part>, answers: &Answers, out: &mut String) {
        for part in parts {
            let delta = match part {
                Part::Text(text) => Delta { content: Some(text), ..Delta::default() },
                Part::Call(call) => {
                    let at = self.choices[index].calls;
                    self.choices[index].calls += 1;
                    let tool_calls = vec![CallDelta { index: at, call }];
                    Delta { tool_calls, ..Delta::default() }
                }
            };
            let choice = ChunkChoice { index, delta, logprobs: None, finish_reason: None };
            self.chunk(choice, answers, out);
        }
    }
}

impl Writer for ChatWriter {
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }

    fn begin(&mut self, answers: &Answers, out: &mut String) {
        self.state(0, answers, out);
    }

    fn token(&mut self, index: usize, token: Token, answers: &Answers, out: &mut String) {
        let state = self.state(index, answers, out);
        if let Some(reader) = &mut state.reader {
            let parts = reader.push(&token.text);
            return self.parts(index, parts, answers, out);
        }
        let tokenizer = answers.lease().engine.tokenizer();
        let has_logprobs = self.wanted.logprobs && !token.is_end;
        if token.text.is_empty() && !has_logprobs {
            return;
        }
        let logprobs = has_logprobs.then(|| LogprobsJson::of([&token], tokenizer));
        let delta = Delta { content: Some(token.text), ..Delta::default() };
        let choice = ChunkChoice { index, delta, logprobs, finish_reason: None };
        self.chunk(choice, answers, out);
    }

    fn end(&mut self, index: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        let state = self.state(index, answers, out);
        let parts = state.reader.take().map(CallReader::finish).unwrap_or_default();
        self.parts(index, parts, answers, out);
        let has_calls = self.choices[index].calls > 0;
        let reason = if has_calls { "tool_calls" } else { summary.reason.name() };
        let choice = ChunkChoice {
            index,
            delta: Delta::default(),
            logprobs: None,
            finish_reason: Some(reason),
        };
        self.chunk(choice, answers, out);
    }

    fn finish(&mut self, answers: &Answers, out: &mut String) {
        if self.wanted.stream.include_usage {
            let usage = Some(answers.usage().into());
            let timings = Some(TimingsJson::of(answers));
            event(&Chunk { head: &self.head, choices: &[], usage, timings }, out);
        }
        out.push_str("data: [DONE]\n\n");
    }

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        event(&error.json(Dialect::OpenAi), out);
    }

    fn keep_alive(&self) -> &'static str {
        ":\n\n"
    }
}
