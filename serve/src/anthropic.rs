//! Anthropic's interface: `POST /v1/messages`, its text and its calls of functions.

mod writer;

use axum::Json;
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::answer::Answers;
use super::app::{Call, blocking};
use super::body::JsonBody;
use super::constraint;
use super::endpoint::{Endpoint, Opened, Question, Target};
use super::error::ApiError;
use super::fields::Fields;
use super::models::ModelLease;
use super::openai::messages::{end_after, read, text_of};
use super::sampling;
use super::thinking;
use super::tools;
use lapwing_engine::Request;
use lapwing_engine::parts::AnswerForm;
use lapwing_engine::tools::Tools;
use writer::MessageWriter;

/// Counts the tokens of a conversation.
pub(crate) async fn count_tokens(
    Extension(call): Extension<Call>,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
    let name: Option<String> = fields.take("model")?;
    let lease = call.model(name.as_deref(), None).await?;
    let (request, _) = conversation(&mut fields, &lease)?;
    let engine = lease.engine.clone();
    let ids = blocking(move || engine.prompt_ids_of(&request)).await??;
    Ok(Json(json!({ "input_tokens": ids.len() })).into_response())
}

/// Answers a conversation.
pub(crate) struct Messages;

impl Endpoint for Messages {
    type Writer = MessageWriter;

    fn target(fields: &mut Fields) -> Result<Target, ApiError> {
        Ok(Target { name: Some(fields.need("model")?), keep_alive: None })
    }

    async fn read(
        Opened { target, lease, mut fields, .. }: Opened<'_>,
    ) -> Result<Question<MessageWriter>, ApiError> {
        let (request, tools) = conversation(&mut fields, lease)?;
        let template = lease.engine.chat_template();
        let form = AnswerForm::new(tools.as_ref(), template);
        if let Some(stop) = fields.take::<Value>("stop_sequences")? {
            fields.put("stop", stop);
        }
        let mut output = fields.object("output_config", "output_config.")?;
        if let Some(format) = output.take::<Value>("format")? {
            fields.put("output_config.format", format);
        }
        fields.name_ignored(output.rest());
        let mut request = sampling::apply(&mut fields, lease.spec(), request)?;
        request.max_tokens = sampling::max_tokens(&mut fields)?;
        let request = constraint::apply(&mut fields, tools.as_ref(), template, request)?;
        let is_streamed = fields.take("stream")?.unwrap_or(false);
        let user = fields.take_of("metadata", "user_id")?;
        fields.drop_if("service_tier", &[json!("auto"), json!("standard_only")]);
        let (requests, ignored) = (vec![request], fields.rest());
        let model = target.name.unwrap_or_default();
        let writer = Box::new(|_: &Answers| MessageWriter::new(model));
        Ok(Question { requests, choices: 1, form, user, is_streamed, ignored, writer })
    }
}

/// The conversation of a request, and its functions.
fn conversation(
    fields: &mut Fields,
    lease: &ModelLease,
) -> Result<(Request, Option<Tools>), ApiError> {
    let mut sent: Vec<Map<String, Value>> = Vec::new();
    let system = text_of("system", fields.take("system")?.unwrap_or(Value::Null))?;
    if !system.is_empty() {
        sent.extend(object(json!({ "role": "system", "content": system })));
    }
    for message in fields.need::<Vec<Map<String, Value>>>("messages")? {
        sent.extend(in_openai_form(message));
    }
    let messages = read(sent)?;
    let end = end_after(&messages)?;
    let sent = fields.take::<Vec<Value>>("tools")?.unwrap_or_default();
    let strict = sent.iter().filter(|tool| tool["strict"] == true);
    let strict: Vec<String> =
        strict.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
    let described = sent.into_iter().map(|tool| {
        // Tools with another type are the provider's own: it knows their parameters.
        let kind = tool["type"].as_str().filter(|kind| *kind != "custom").unwrap_or("function");
        json!({ "type": kind, "function": {
            "name": tool["name"],
            "description": tool["description"],
            "parameters": tool["input_schema"],
        } })
    });
    let only_one = fields.take_of("tool_choice", "disable_parallel_tool_use")?.unwrap_or(false);
    let choice = fields.take::<Value>("tool_choice")?.map(|choice| match choice["type"].as_str() {
        Some("tool") => json!({ "name": choice["name"] }),
        Some("any") => json!("required"),
        Some(other) => json!(other),
        None => choice,
    });
    let template = lease.engine.chat_template();
    let tools = tools::read(Some(described.collect()), choice)?;
    if tools.is_none() && only_one {
        fields.name_ignored(vec!["tool_choice.disable_parallel_tool_use".to_owned()]);
    }
    let tools = tools.map(|tools| tools.parallel(!only_one).with_strict(&strict));
    let request = tools::request(tools.as_ref(), messages, template).prompt_end(end);
    let (request, ignored) = thinking::apply(fields, template, request)?;
    fields.name_ignored(ignored);
    Ok((request, tools))
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

/// A message with its calls and their results as OpenAI's interface has them, in which results are messages
/// of their own.
fn in_openai_form(mut message: Map<String, Value>) -> Vec<Map<String, Value>> {
    let blocks = match message.shift_remove("content") {
        Some(Value::Array(blocks)) => blocks,
        Some(Value::String(text)) => vec![json!({ "type": "text", "text": text })],
        _ => return vec![message],
    };
    let (mut texts, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
    let mut thoughts = String::new();
    for block in blocks {
        match block["type"].as_str() {
            Some("tool_use") => calls.push(json!({
                "id": block["id"],
                "type": "function",
                "function": { "name": block["name"], "arguments": block["input"] },
            })),
            Some("tool_result") => results.extend(object(json!({
                "role": "tool",
                "tool_call_id": block["tool_use_id"],
                "content": block["content"],
            }))),
            Some("thinking") => thoughts.push_str(block["thinking"].as_str().unwrap_or_default()),
            // Only the server that has made them can read them.
            Some("redacted_thinking") => {}
            _ => texts.push(block),
        }
    }
    if !texts.is_empty() || !calls.is_empty() || results.is_empty() {
        message.insert("content".to_owned(), Value::Array(texts));
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        if !thoughts.is_empty() {
            message.insert("reasoning_content".to_owned(), thoughts.into());
        }
        results.push(message);
    }
    results
}
