//! OpenAI's `POST /v1/responses`, its text and its calls of functions. Nothing is stored.

mod writer;

use axum::Json;
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::answer::Answers;
use super::app::Call;
use super::constraint;
use super::error::ApiError;
use super::fields::Fields;
use super::gate::{JsonBody, name_ignored};
use super::models::ModelLease;
use super::openai::messages::read;
use super::parts::AnswerForm;
use super::sampling;
use super::streaming::stream;
use super::tools::Tools;
use crate::request::Request;
use writer::ResponseWriter;

/// Answers a conversation.
pub(crate) async fn responses(
    Extension(call): Extension<Call>,
    JsonBody(mut fields): JsonBody,
) -> Result<Response, ApiError> {
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
    let requests = vec![request];
    let mut answers = Answers::start(call.clone(), lease, user, (requests, 1)).await?;
    let form = AnswerForm::new(tools.as_ref(), answers.lease().engine.chat_template());
    let mut writer = ResponseWriter::new(&answers, form);
    let mut response = if is_streamed {
        answers.begun().await?;
        stream(answers, writer)
    } else {
        let choice = answers.complete().await?.pop().unwrap_or_default();
        let reason = choice.reason();
        Json(writer.whole(choice.text, reason, &answers)).into_response()
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
    let messages = read(sent)?;
    let tools = fields.take("tools")?;
    let template = lease.engine.chat_template();
    let tools = Tools::new(tools, fields.take("tool_choice")?, template)?;
    Ok((Tools::request(tools.as_ref(), messages, template), tools))
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
