//! OpenAI's `POST /v1/responses`, its text and its calls of functions. Nothing is stored.

use std::time::SystemTime;

use axum::Json;
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::answer::Answers;
use super::app::{Call, unix_seconds};
use super::constraint;
use super::error::{ApiError, Dialect};
use super::fields::Fields;
use super::gate::{JsonBody, name_ignored, new_id};
use super::models::ModelLease;
use super::openai::chat::separate;
use super::openai::messages::read;
use super::sampling;
use super::streaming::{Writer, named_event, stream};
use super::tools::{Style, ToolCall, Tools};
use crate::request::Request;
use crate::stream::{Summary, Token};

/// Answers a conversation.
pub(crate) async fn responses(
    Extension(call): Extension<Call>,
    JsonBody(fields): JsonBody,
) -> Response {
    let dialect = call.dialect();
    answer(call, fields).await.unwrap_or_else(|error| error.response(dialect))
}

async fn answer(call: Call, mut fields: Fields) -> Result<Response, ApiError> {
    let name: Option<String> = fields.take("model")?;
    if fields.take::<String>("previous_response_id")?.is_some() {
        return Err(ApiError::field(
            "previous_response_id",
            "previous_response_id is not supported, because answers are not stored; send the whole conversation",
        ));
    }
    let lease = call.model(name.as_deref(), None).await?;
    let (request, tools) = conversation(&mut fields, &lease)?;
    let mut request = sampling::apply(&mut fields, lease.spec(), request)?;
    request.max_tokens = fields.take("max_output_tokens")?;
    let mut text = fields.object("text", "text.")?;
    if let Some(format) = text.take::<Value>("format")? {
        fields.put("response_format", format);
    }
    let request = constraint::apply(&mut fields, tools.as_ref(), request)?;
    let is_streamed = fields.take("stream")?.unwrap_or(false);
    let user = fields.take("user")?;
    let stores = fields.take::<bool>("store")?.unwrap_or(false);
    fields.drop_all(&[
        "metadata",
        "parallel_tool_calls",
        "truncation",
        "include",
        "reasoning",
        "service_tier",
    ]);
    let mut ignored = fields.rest();
    ignored.extend(stores.then(|| "store".to_owned()));
    let client = call.caller.client(user);
    let permit = call.app.clients.admit(&client)?;
    let requests = vec![request.client(&client)];
    let mut answers = Answers::start(call.clone(), lease, (client, permit), (requests, 1)).await?;
    let style = tools.map(|tools| tools.style);
    let writer = ResponseWriter::new(&answers, style);
    let mut response = if is_streamed {
        answers.begun().await?;
        stream(answers, writer)
    } else {
        let choice = answers.complete().await?.pop().unwrap_or_default();
        let output = writer.output(&choice.text);
        Json(writer.response(choice.reason(), &output, &answers)).into_response()
    };
    name_ignored(&call, &mut response, &ignored);
    Ok(response)
}

/// The conversation of a request, and its functions.
fn conversation(
    fields: &mut Fields,
    lease: &ModelLease,
) -> Result<(Request, Option<Tools>), ApiError> {
    let mut sent: Vec<Map<String, Value>> = Vec::new();
    let mut add = |value: Value| {
        if let Value::Object(map) = value {
            sent.push(map);
        }
    };
    if let Some(instructions) = fields.take::<String>("instructions")? {
        add(json!({ "role": "system", "content": instructions }));
    }
    match fields.need::<Value>("input")? {
        Value::String(text) => add(json!({ "role": "user", "content": text })),
        Value::Array(items) => items.into_iter().map(in_chat_form).for_each(add),
        _ => return Err(ApiError::field("input", "input is neither a text nor a list of items")),
    }
    let mut messages = read(sent)?;
    let tools = fields.take("tools")?;
    let template = lease.engine.chat_template();
    let tools = Tools::new(tools, fields.take("tool_choice")?, template)?;
    let told = tools.as_ref().and_then(|tools| tools.tell(&mut messages, template));
    let request = Request::chat(messages);
    Ok((told.into_iter().fold(request, |r, tools| r.template_variable("tools", tools)), tools))
}

/// An item as a message of a chat.
fn in_chat_form(item: Value) -> Value {
    match item["type"].as_str() {
        Some("function_call") => json!({ "role": "assistant", "content": "", "tool_calls": [{
            "id": item["call_id"],
            "type": "function",
            "function": { "name": item["name"], "arguments": item["arguments"] },
        }] }),
        Some("function_call_output") => json!({
            "role": "tool", "tool_call_id": item["call_id"], "content": item["output"],
        }),
        _ => item,
    }
}

/// Writes an answer.
struct ResponseWriter {
    id: String,
    item: String,
    created: u64,
    model: String,
    style: Option<Style>,
    text: String,
    /// Number of the next event.
    sequence: u64,
}

impl ResponseWriter {
    fn new(answers: &Answers, style: Option<Style>) -> ResponseWriter {
        ResponseWriter {
            id: new_id("resp_"),
            item: new_id("msg_"),
            created: unix_seconds(SystemTime::now()),
            model: answers.lease().name().to_owned(),
            style,
            text: String::new(),
            sequence: 0,
        }
    }

    /// The items of a complete answer.
    fn output(&self, text: &str) -> Vec<Value> {
        let (text, calls) = match self.style {
            Some(style) => separate(style, text),
            None => (text.to_owned(), Vec::new()),
        };
        let mut output = Vec::new();
        if !text.is_empty() || calls.is_empty() {
            output.push(json!({
                "type": "message",
                "id": self.item,
                "role": "assistant",
                "status": "completed",
                "content": [{ "type": "output_text", "text": text, "annotations": [] }],
            }));
        }
        let call = |call: ToolCall| {
            json!({
                "type": "function_call",
                "id": new_id("fc_"),
                "call_id": call.id,
                "name": call.function.name,
                "arguments": call.function.arguments,
                "status": "completed",
            })
        };
        output.extend(calls.into_iter().map(call));
        output
    }

    fn response(&self, reason: &str, output: &[Value], answers: &Answers) -> Value {
        let usage = answers.usage();
        let (status, incomplete) = match reason {
            "" => ("in_progress", Value::Null),
            "length" => ("incomplete", json!({ "reason": "max_output_tokens" })),
            _ => ("completed", Value::Null),
        };
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": null,
            "incomplete_details": incomplete,
            "instructions": null,
            "metadata": {},
            "model": self.model,
            "output": output,
            "parallel_tool_calls": true,
            "temperature": null,
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
            "store": false,
            "usage": {
                "input_tokens": usage.prompt,
                "input_tokens_details": { "cached_tokens": usage.cached },
                "output_tokens": usage.generated,
                "output_tokens_details": { "reasoning_tokens": 0 },
                "total_tokens": usage.prompt + usage.generated,
            },
        })
    }

    /// Appends an event of `kind` with further fields.
    fn send(&mut self, kind: &str, mut data: Value, out: &mut String) {
        data["type"] = kind.into();
        data["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        named_event(kind, &data, out);
    }

    /// Begins the message, unless its text may become calls.
    fn open(&mut self, out: &mut String) {
        let item = json!({
            "type": "message", "id": self.item, "role": "assistant", "status": "in_progress", "content": [],
        });
        let data = json!({ "output_index": 0, "item": item });
        self.send("response.output_item.added", data, out);
        let part = json!({ "type": "output_text", "text": "", "annotations": [] });
        let data =
            json!({ "item_id": self.item, "output_index": 0, "content_index": 0, "part": part });
        self.send("response.content_part.added", data, out);
    }

    /// Ends an item; a message ends its text before.
    fn close(&mut self, at: usize, item: &Value, out: &mut String) {
        let place = |field: &str, value: Value| {
            let mut data = json!({ "item_id": item["id"], "output_index": at, "content_index": 0 });
            data[field] = value;
            data
        };
        if item["type"] == "message" {
            let part = &item["content"][0];
            self.send("response.output_text.done", place("text", part["text"].clone()), out);
            self.send("response.content_part.done", place("part", part.clone()), out);
        } else {
            let data = json!({ "output_index": at, "item": item });
            self.send("response.output_item.added", data, out);
            let arguments = &item["arguments"];
            let data = place("delta", arguments.clone());
            self.send("response.function_call_arguments.delta", data, out);
            let data = place("arguments", arguments.clone());
            self.send("response.function_call_arguments.done", data, out);
        }
        let data = json!({ "output_index": at, "item": item });
        self.send("response.output_item.done", data, out);
    }
}

impl Writer for ResponseWriter {
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }

    fn begin(&mut self, answers: &Answers, out: &mut String) {
        let response = self.response("", &[], answers);
        self.send("response.created", json!({ "response": response }), out);
        self.send("response.in_progress", json!({ "response": response }), out);
        if self.style.is_none() {
            self.open(out);
        }
    }

    fn token(&mut self, _: usize, token: Token, _: &Answers, out: &mut String) {
        self.text.push_str(&token.text);
        // Text that may hold calls is sent when it is complete.
        if self.style.is_none() && !token.text.is_empty() {
            let data = json!({
                "item_id": self.item, "output_index": 0, "content_index": 0, "delta": token.text,
            });
            self.send("response.output_text.delta", data, out);
        }
    }

    fn end(&mut self, _: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        let output = self.output(&self.text);
        for (at, item) in output.iter().enumerate() {
            if self.style.is_some() && item["type"] == "message" {
                self.open(out);
                let data = json!({
                    "item_id": self.item, "output_index": at, "content_index": 0,
                    "delta": item["content"][0]["text"],
                });
                self.send("response.output_text.delta", data, out);
            }
            self.close(at, item, out);
        }
        let reason = summary.reason.name();
        let response = self.response(reason, &output, answers);
        let kind = if reason == "length" { "response.incomplete" } else { "response.completed" };
        self.send(kind, json!({ "response": response }), out);
    }

    fn finish(&mut self, _: &Answers, _: &mut String) {}

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        let error = &error.json(Dialect::OpenAi)["error"];
        let data =
            json!({ "code": error["code"], "message": error["message"], "param": error["param"] });
        self.send("error", data, out);
    }

    fn keep_alive(&self) -> &'static str {
        ":\n\n"
    }
}
