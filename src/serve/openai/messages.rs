//! Messages of a conversation, as clients send them.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::chat::Message;
use crate::serve::error::ApiError;

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
    messages.into_iter().enumerate().map(|(at, message)| read_one(at, message)).collect()
}

fn read_one(at: usize, mut fields: Map<String, Value>) -> Result<Message, ApiError> {
    let name = |field: &str| format!("messages[{at}].{field}");
    let role = match fields.shift_remove("role") {
        Some(Value::String(role)) => role,
        _ => return Err(ApiError::field(&name("role"), format!("{} is not a text", name("role")))),
    };
    // Newer clients call instructions so; templates know them as the system's.
    let role = if role == "developer" { "system".to_owned() } else { role };
    let content = text_of(&name("content"), fields.shift_remove("content").unwrap_or(Value::Null))?;
    let mut message = Message::new(role, content);
    for (field, value) in fields {
        match field.as_str() {
            "tool_calls" => {
                message = message.field(field, with_objects(value));
            }
            "tool_call_id" | "name" | "reasoning_content" | "tool_name" | "thinking" => {
                message = message.field(field, value);
            }
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

/// Calls of functions whose arguments are objects, as templates expect them; clients send them as text.
fn with_objects(mut calls: Value) -> Value {
    for call in calls.as_array_mut().into_iter().flatten() {
        let Some(arguments) = call.pointer_mut("/function/arguments") else { continue };
        if let Some(text) = arguments.as_str()
            && let Ok(object @ Value::Object(_)) = serde_json::from_str(text)
        {
            *arguments = object;
        }
    }
    calls
}
