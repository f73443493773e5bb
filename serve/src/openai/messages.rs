//! Messages of a conversation, as clients send them.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::calls;
use crate::error::ApiError;
use crate::fields::Fields;
use lapwing_engine::PromptEnd;
use lapwing_engine::chat::Message;

/// The content of a message.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

/// The messages of a request, for the model's template.
///
/// # Errors
/// When there are none, one has no role, or one has parts that are not text.
pub(crate) fn read(messages: Vec<Map<String, Value>>) -> Result<Vec<Message>, ApiError> {
    if messages.is_empty() {
        return Err(ApiError::field("messages", "messages is empty"));
    }
    let read = messages.into_iter().enumerate().map(|(at, message)| read_one(at, message));
    let mut messages = read.collect::<Result<Vec<Message>, ApiError>>()?;
    calls::connect(&mut messages);
    Ok(messages)
}

/// How the prompt ends, by the names of vLLM's and llama.cpp's servers.
///
/// # Errors
/// When the fields contradict each other, or the last message cannot be continued.
pub(crate) fn prompt_end(fields: &mut Fields, messages: &[Message]) -> Result<PromptEnd, ApiError> {
    let continues = fields.take("continue_final_message")?.unwrap_or(false);
    match (continues, fields.take("add_generation_prompt")?) {
        (true, Some(true)) => Err(ApiError::field(
            "continue_final_message",
            "continue_final_message and add_generation_prompt exclude each other",
        )),
        (true, _) => within(messages.last()),
        (false, Some(false)) => Ok(PromptEnd::Nothing),
        (false, _) => Ok(PromptEnd::NewMessage),
    }
}

/// How the prompt ends where a last message of the model is continued.
///
/// # Errors
/// When it cannot be.
pub(crate) fn end_after(messages: &[Message]) -> Result<PromptEnd, ApiError> {
    match messages.last() {
        Some(last) if last.role == "assistant" => within(Some(last)),
        _ => Ok(PromptEnd::NewMessage),
    }
}

fn within(last: Option<&Message>) -> Result<PromptEnd, ApiError> {
    if last.is_some_and(|last| last.fields.contains_key("tool_calls")) {
        let message = "the last message has calls of functions, so that it cannot be continued; add their results";
        return Err(ApiError::field("messages", message));
    }
    Ok(PromptEnd::LastMessage)
}

fn read_one(at: usize, mut fields: Map<String, Value>) -> Result<Message, ApiError> {
    let name = |field: &str| format!("messages[{at}].{field}");
    let role = match fields.shift_remove("role") {
        Some(Value::String(role)) => role,
        _ => return Err(ApiError::field(&name("role"), format!("{} is not a text", name("role")))),
    };
    // Newer clients call instructions so; templates know them as the system's.
    let role = match &*role {
        "developer" => "system".to_owned(),
        "function" => "tool".to_owned(),
        _ => role,
    };
    let content = text_of(&name("content"), fields.shift_remove("content").unwrap_or(Value::Null))?;
    let mut message = Message::new(role, content);
    // What the model has thought, by the names of several servers.
    let thoughts = ["reasoning_content", "reasoning", "thinking"]
        .iter()
        .find_map(|field| fields.get(*field)?.as_str().filter(|text| !text.is_empty()));
    if let Some(thoughts) = thoughts {
        message = message.field("reasoning_content", thoughts);
    }
    if let Some(Value::Object(call)) = fields.shift_remove("function_call") {
        fields.insert("tool_calls".to_owned(), json!([{ "function": call }]));
    }
    for (field, value) in fields {
        match field.as_str() {
            _ if value.is_null() => {}
            "tool_calls" => {
                let calls = calls::read(&name(&field), &value)?;
                if !calls.is_empty() {
                    message = message.field(field, calls);
                }
            }
            "tool_name" => message = message.field("name", value),
            "tool_call_id" | "name" | "thinking" => message = message.field(field, value),
            _ => {}
        }
    }
    Ok(message)
}

/// The text of a content: a text, or parts that are texts.
///
/// # Errors
/// When a part is not text.
pub(crate) fn text_of(name: &str, content: Value) -> Result<String, ApiError> {
    if content.is_null() {
        return Ok(String::new());
    }
    let content = serde_json::from_value(content).map_err(|_| {
        ApiError::field(name, format!("{name} is neither a text nor a list of parts"))
    })?;
    match content {
        Content::Text(text) => Ok(text),
        Content::Parts(parts) => {
            let mut whole = String::new();
            for part in parts {
                match (part.kind.as_str(), part.text.or(part.refusal)) {
                    ("text" | "input_text" | "output_text" | "refusal", Some(text)) => {
                        whole.push_str(&text);
                    }
                    (kind, _) => {
                        let message = format!(
                            "{name} has a part of type '{kind}', but this server reads only text"
                        );
                        return Err(ApiError::field(name, message));
                    }
                }
            }
            Ok(whole)
        }
    }
}
