//! `POST /api/generate`.

use axum::Json;
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

use super::{EMPTY_LINE, LINES, Totals, keep_alive, now, with_options};
use crate::answer::Answers;
use crate::app::Call;
use crate::body::{JsonBody, name_ignored};
use crate::constraint;
use crate::error::{ApiError, Dialect};
use crate::parts::{AnswerForm, AnswerReader, Part};
use crate::streaming::{Writer, line, stream};
use crate::thinking;
use lapwing_engine::chat::Message;
use lapwing_engine::{Prompt, Request};
use lapwing_engine::{Summary, Token};

/// Continues a prompt.
pub(crate) async fn generate(
    Extension(call): Extension<Call>,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
    let name: String = fields.need("model")?;
    let keep = keep_alive(&mut fields)?;
    let lease = call.model(Some(&name), keep).await?;
    let prompt = fields.take::<String>("prompt")?.unwrap_or_default();
    if prompt.is_empty() {
        return Ok(Json(loaded(&name, keep, "response", json!(""))).into_response());
    }
    if fields.take::<Vec<Value>>("images")?.is_some_and(|images| !images.is_empty()) {
        return Err(ApiError::field("images", "this server reads only text, no images"));
    }
    let system: Option<String> = fields.take("system")?;
    let raw = fields.take("raw")?.unwrap_or(false) || lease.engine.chat_template().is_none();
    let prompt = match raw {
        true => Prompt::Text(prompt),
        false => {
            let system = system.filter(|text| !text.is_empty()).map(Message::system);
            Prompt::Chat(system.into_iter().chain([Message::user(prompt)]).collect())
        }
    };
    // A raw prompt is answered as the model writes it.
    let template = lease.engine.chat_template().filter(|_| !raw);
    let (request, mut ignored) = thinking::apply(&mut fields, template, Request::new(prompt))?;
    let (mut request, of_options) = with_options(&mut fields, &lease, request)?;
    ignored.extend(of_options);
    let form = AnswerForm::new(None, template);
    if let Some(grammar) = fields.take("format")?.map(constraint::of_ollama).transpose()?.flatten()
    {
        request = request.grammar(grammar);
    }
    let is_streamed = fields.take("stream")?.unwrap_or(true);
    ignored.extend(fields.rest());
    let requests = vec![form.shown(request)];
    let mut answers = Answers::start(call.clone(), lease, None, requests, 1).await?;
    ignored.extend_from_slice(answers.ignored_keywords());
    let reader = AnswerReader::new(form, &answers);
    let mut writer = GenerateWriter { model: name, ids: Vec::new(), reader };
    let mut response = if is_streamed {
        answers.begun().await?;
        stream(answers, writer)
    } else {
        let mut complete = answers.complete().await?;
        let Some(choice) = complete.pop() else { return Err(ApiError::invalid("no answer")) };
        writer.ids = choice.tokens.iter().map(|token| token.id).collect();
        let reason = choice.reason();
        let divided = writer.reader.divide(choice.text);
        Json(writer.last(reason, &divided.thoughts, &divided.text, &answers)).into_response()
    };
    name_ignored(&call, &mut response, &ignored);
    Ok(response)
}

/// The answer to a request that only loads a model, or unloads it.
pub(super) fn loaded(
    model: &str,
    keep: Option<Option<std::time::Duration>>,
    field: &str,
    value: Value,
) -> Value {
    let unloads = keep.flatten().is_some_and(|keep| keep.is_zero());
    let reason = if unloads { "unload" } else { "load" };
    json!({ "model": model, "created_at": now(), field: value, "done": true, "done_reason": reason })
}

struct GenerateWriter {
    model: String,
    /// Ids of the answer.
    ids: Vec<u32>,
    reader: AnswerReader,
}

#[derive(Serialize)]
struct Line<'a> {
    model: &'a str,
    created_at: String,
    response: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    thinking: &'a str,
    done: bool,
}

#[derive(Serialize)]
struct Last<'a> {
    #[serde(flatten)]
    line: Line<'a>,
    done_reason: &'static str,
    /// Ids of the prompt and the answer.
    context: Vec<u32>,
    #[serde(flatten)]
    totals: Totals,
}

impl GenerateWriter {
    /// The last line, with thoughts and text that were not written before.
    fn last<'a>(
        &'a self,
        done_reason: &'static str,
        thinking: &'a str,
        response: &'a str,
        answers: &Answers,
    ) -> Last<'a> {
        let line = Line { model: &self.model, created_at: now(), response, thinking, done: true };
        let context = [answers.prompt_ids(), &self.ids].concat();
        Last { line, done_reason, context, totals: Totals::of(answers) }
    }

    /// Writes a line for each part. There are no functions, so that no part is a call.
    fn parts(&self, parts: Vec<Part>, out: &mut String) {
        for part in parts {
            let (thinking, response) = match &part {
                Part::Thought(text) => (&**text, ""),
                Part::Text(text) => ("", &**text),
                Part::Call { .. } | Part::Arguments(_) | Part::CallEnd => continue,
            };
            let (model, created_at) = (&*self.model, now());
            line(&Line { model, created_at, response, thinking, done: false }, out);
        }
    }
}

impl Writer for GenerateWriter {
    fn content_type(&self) -> &'static str {
        LINES
    }

    fn token(&mut self, _: usize, token: Token, _: &Answers, out: &mut String) {
        if !token.is_end {
            self.ids.push(token.id);
        }
        let parts = self.reader.push(token.text);
        self.parts(parts, out);
    }

    fn end(&mut self, _: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        let parts = self.reader.finish();
        self.parts(parts, out);
        line(&self.last(summary.reason.name(), "", "", answers), out);
    }

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        line(&error.json(Dialect::Ollama), out);
    }

    fn keep_alive(&self) -> &'static str {
        EMPTY_LINE
    }
}
