//! Ollama's answers, whole and streamed. Answers of chats and of generated texts differ only in the fields that hold the answer.

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Totals, now, with_options};
use crate::answer::{Answers, Complete};
use crate::constraint;
use crate::endpoint::{Opened, Question, Target};
use crate::error::{ApiError, Dialect};
use crate::streaming::{Writer, line};
use crate::thinking;
use lapwing_engine::parts::{Answer, AnswerForm, Part};
use lapwing_engine::tools::Tools;
use lapwing_engine::{Prompt, Request, Summary, Token};

/// Writes an answer.
pub(crate) struct AnswerWriter {
    model: String,
    kind: Kind,
    /// A call whose end is still to come.
    call: Answer,
    /// Ids of the answer.
    ids: Vec<u32>,
}

/// What an answer is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message.
    Chat,
    /// A text, which clients continue by its ids.
    Text,
}

/// A line of a stream, or a whole answer.
#[derive(Serialize)]
struct Line<'a> {
    model: &'a str,
    created_at: String,
    #[serde(flatten)]
    content: Content,
    done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    done_reason: Option<&'static str>,
    /// Ids of the prompt and the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Vec<u32>>,
    #[serde(flatten)]
    totals: Option<Totals>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content {
    Chat {
        message: MessageJson,
    },
    Text {
        response: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        thinking: String,
    },
}

#[derive(Serialize)]
struct MessageJson {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallJson>,
}

#[derive(Serialize)]
struct CallJson {
    function: FunctionJson,
}

#[derive(Serialize)]
struct FunctionJson {
    name: String,
    /// An object here, not text.
    arguments: Box<RawValue>,
}

impl Content {
    fn new(kind: Kind, divided: Answer) -> Content {
        let Answer { thoughts: thinking, text, calls, .. } = divided;
        if kind == Kind::Text {
            return Content::Text { response: text, thinking };
        }
        let (mut content, mut tool_calls) = (text, Vec::new());
        for call in calls {
            match call.compact_arguments() {
                Some(arguments) => {
                    let function = FunctionJson { name: call.name, arguments };
                    tool_calls.push(CallJson { function });
                }
                // The answer was cut off inside of them.
                None => content.push_str(&format!("{}({}", call.name, call.arguments)),
            }
        }
        Content::Chat { message: MessageJson { role: "assistant", content, thinking, tool_calls } }
    }
}

impl<'a> Line<'a> {
    /// A line with a part of an answer; `done_reason` says why the answer ended, if it has.
    fn new(model: &'a str, content: Content, done_reason: Option<&'static str>) -> Line<'a> {
        let (created_at, done) = (now(), done_reason.is_some());
        Line { model, created_at, content, done, done_reason, context: None, totals: None }
    }
}

/// The answer to a request that only loads a model, or unloads it.
pub(super) fn loaded(Target { name, keep_alive }: &Target, kind: Kind) -> Response {
    let unloads = keep_alive.flatten().is_some_and(|keep_alive| keep_alive.is_zero());
    let reason = if unloads { "unload" } else { "load" };
    let (model, content) = (name.as_deref(), Content::new(kind, Answer::default()));
    Json(Line::new(model.unwrap_or_default(), content, Some(reason))).into_response()
}

/// What a request asks for, `request` having its prompt.
///
/// # Errors
/// When a field is invalid.
pub(super) fn question(
    opened: Opened<'_>,
    request: Request,
    tools: Option<Tools>,
    kind: Kind,
) -> Result<Question<AnswerWriter>, ApiError> {
    let Opened { target, lease, mut fields, .. } = opened;
    // A raw prompt is answered as the model writes it.
    let is_raw = matches!(request.prompt, Prompt::Text(_));
    let template = lease.engine.chat_template().filter(|_| !is_raw);
    let (request, mut ignored) = thinking::apply(&mut fields, template, request)?;
    let (mut request, of_options) = with_options(&mut fields, lease, request)?;
    ignored.extend(of_options);
    let form = AnswerForm::new(tools.as_ref(), template);
    let format = fields.take("format")?.map(constraint::of_ollama).transpose()?.flatten();
    // As in Ollama, a format holds for the whole answer.
    let calls = || tools.as_ref().and_then(|tools| tools.grammar(None, template));
    let format = format.map(|format| Tools::message(format, template));
    if let Some(grammar) = format.or_else(calls) {
        request = request.grammar(grammar);
    }
    let is_streamed = fields.take("stream")?.unwrap_or(true);
    ignored.extend(fields.rest());
    let (requests, model) = (vec![request], target.name.unwrap_or_default());
    let writer = AnswerWriter { model, kind, call: Answer::default(), ids: Vec::new() };
    let writer = Box::new(|_: &Answers| writer);
    Ok(Question { requests, choices: 1, form, user: None, is_streamed, ignored, writer })
}

impl AnswerWriter {
    /// The last line, with what was not written before.
    fn last(&self, divided: Answer, reason: &'static str, answers: &Answers) -> Line<'_> {
        let is_text = self.kind == Kind::Text;
        let context = is_text.then(|| [answers.prompt_ids(0), &self.ids].concat());
        let totals = Some(Totals::of(answers));
        let content = Content::new(self.kind, divided);
        Line { context, totals, ..Line::new(&self.model, content, Some(reason)) }
    }
}

impl Writer for AnswerWriter {
    fn whole(&mut self, mut choices: Vec<Complete>, answers: &Answers) -> impl Serialize {
        let choice = choices.pop().unwrap_or_default();
        self.ids = choice.tokens.iter().map(|token| token.id).collect();
        let reason = choice.reason();
        self.last(Answer::of(choice.parts), reason, answers)
    }

    fn content_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn token(&mut self, _: usize, token: &Token, _: &Answers, _: &mut String) {
        if !token.is_end {
            self.ids.push(token.id);
        }
    }

    /// Writes a line for each part; a call is written when it is complete.
    fn parts(&mut self, _: usize, parts: Vec<Part>, _: &Answers, out: &mut String) {
        for part in parts {
            let is_open = matches!(part, Part::Call { .. } | Part::Arguments(_));
            self.call.add(part);
            if !is_open {
                let content = Content::new(self.kind, std::mem::take(&mut self.call));
                line(&Line::new(&self.model, content, None), out);
            }
        }
    }

    fn end(&mut self, _: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        line(&self.last(Answer::default(), summary.reason.name(), answers), out);
    }

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        line(&error.json(Dialect::Ollama), out);
    }

    /// White space between the lines is allowed, and clients skip empty ones.
    fn keep_alive(&self) -> &'static str {
        "\n"
    }
}
