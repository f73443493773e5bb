//! `POST /api/chat`.

use axum::Json;
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::generate::loaded;
use super::{EMPTY_LINE, LINES, Totals, keep_alive, now, with_options};
use crate::answer::Answers;
use crate::app::Call;
use crate::body::{JsonBody, name_ignored};
use crate::constraint;
use crate::error::{ApiError, Dialect};
use crate::openai::messages;
use crate::parts::{AnswerForm, AnswerReader, Divided, Part};
use crate::streaming::{Writer, line, stream};
use crate::thinking;
use crate::tools::{CalledFunction, ToolCall, Tools, as_object};
use lapwing_engine::{Summary, Token};

/// Answers a conversation.
pub(crate) async fn chat(
    Extension(call): Extension<Call>,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
    let name: String = fields.need("model")?;
    let keep = keep_alive(&mut fields)?;
    let lease = call.model(Some(&name), keep).await?;
    let sent: Vec<Map<String, Value>> = fields.take("messages")?.unwrap_or_default();
    if sent.is_empty() {
        let message = json!({ "role": "assistant", "content": "" });
        return Ok(Json(loaded(&name, keep, "message", message)).into_response());
    }
    let has_images = |message: &Map<String, Value>| {
        message.get("images").and_then(Value::as_array).is_some_and(|images| !images.is_empty())
    };
    if sent.iter().any(has_images) {
        return Err(ApiError::field("images", "this server reads only text, no images"));
    }
    let messages = messages::read(sent)?;
    let template = lease.engine.chat_template();
    let tools = Tools::new(fields.take("tools")?, None, template)?;
    let end = messages::end_after(&messages)?;
    let request = Tools::request(tools.as_ref(), messages, template).prompt_end(end);
    let (request, mut ignored) = thinking::apply(&mut fields, template, request)?;
    let (mut request, of_options) = with_options(&mut fields, &lease, request)?;
    ignored.extend(of_options);
    let form = AnswerForm::new(tools.as_ref(), template);
    let format = fields.take("format")?.map(constraint::of_ollama).transpose()?.flatten();
    // As in Ollama, a format holds for the whole answer.
    if let Some(grammar) = format.or_else(|| constraint::calls(tools.as_ref())) {
        request = request.grammar(grammar);
    }
    let is_streamed = fields.take("stream")?.unwrap_or(true);
    ignored.extend(fields.rest());
    let requests = vec![form.shown(request)];
    let mut answers = Answers::start(call.clone(), lease, None, requests, 1).await?;
    ignored.extend_from_slice(answers.ignored_keywords());
    let reader = AnswerReader::new(form, &answers);
    let mut writer = ChatWriter { model: name, reader, call: Divided::default() };
    let mut response = if is_streamed {
        answers.begun().await?;
        stream(answers, writer)
    } else {
        let mut complete = answers.complete().await?;
        let Some(choice) = complete.pop() else { return Err(ApiError::invalid("no answer")) };
        let reason = choice.reason();
        let divided = writer.reader.divide(choice.text);
        Json(writer.last(reason, MessageJson::new(divided), &answers)).into_response()
    };
    name_ignored(&call, &mut response, &ignored);
    Ok(response)
}

struct ChatWriter {
    model: String,
    reader: AnswerReader,
    /// A call whose end is still to come.
    call: Divided,
}

#[derive(Serialize)]
struct Line<'a> {
    model: &'a str,
    created_at: String,
    message: MessageJson,
    done: bool,
}

#[derive(Serialize)]
struct Last<'a> {
    #[serde(flatten)]
    line: Line<'a>,
    done_reason: &'static str,
    #[serde(flatten)]
    totals: Totals,
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

impl MessageJson {
    fn new(divided: Divided) -> MessageJson {
        let Divided { thoughts: thinking, text: mut content, calls } = divided;
        let mut tool_calls = Vec::new();
        for ToolCall { function: CalledFunction { name, arguments }, .. } in calls {
            match as_object(&arguments) {
                Some(arguments) => {
                    tool_calls.push(CallJson { function: FunctionJson { name, arguments } });
                }
                // The answer was cut off inside of them.
                None => content.push_str(&format!("{name}({arguments}")),
            }
        }
        MessageJson { role: "assistant", content, thinking, tool_calls }
    }
}

impl ChatWriter {
    fn last<'a>(
        &'a self,
        done_reason: &'static str,
        message: MessageJson,
        answers: &Answers,
    ) -> Last<'a> {
        let line = Line { model: &self.model, created_at: now(), message, done: true };
        Last { line, done_reason, totals: Totals::of(answers) }
    }

    /// Writes a line for each part; a call is written when it is complete.
    fn parts(&mut self, parts: Vec<Part>, out: &mut String) {
        for part in parts {
            let is_open = matches!(part, Part::Call { .. } | Part::Arguments(_));
            self.call.add(part);
            if is_open {
                continue;
            }
            let message = MessageJson::new(std::mem::take(&mut self.call));
            line(&Line { model: &self.model, created_at: now(), message, done: false }, out);
        }
    }
}

impl Writer for ChatWriter {
    fn content_type(&self) -> &'static str {
        LINES
    }

    fn token(&mut self, _: usize, token: Token, _: &Answers, out: &mut String) {
        let parts = self.reader.push(token.text);
        self.parts(parts, out);
    }

    fn end(&mut self, _: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        let parts = self.reader.finish();
        self.parts(parts, out);
        let message = MessageJson::new(Divided::default());
        line(&self.last(summary.reason.name(), message, answers), out);
    }

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        line(&error.json(Dialect::Ollama), out);
    }

    fn keep_alive(&self) -> &'static str {
        EMPTY_LINE
    }
}
