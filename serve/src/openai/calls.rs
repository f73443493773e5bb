//! Earlier calls of functions in the messages of a conversation, in one form for every template.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use crate::error::ApiError;
use lapwing_engine::chat::{Message, short_id};
use lapwing_engine::tools::arguments_of;

/// Calls as templates expect them: with a name, and with arguments that are an object, which clients send as text. What
/// clients add, such as a number in a stream, is left out.
///
/// # Errors
/// When one has no name.
pub(super) fn read(name: &str, calls: &Value) -> Result<Vec<Value>, ApiError> {
    let Some(calls) = calls.as_array() else {
        return Err(ApiError::field(name, format!("{name} is not a list")));
    };
    calls.iter().enumerate().map(|(at, call)| one(&format!("{name}[{at}]"), call)).collect()
}

fn one(name: &str, call: &Value) -> Result<Value, ApiError> {
    let function = call.get("function").unwrap_or(call);
    let Some(called) = function.get("name").and_then(Value::as_str) else {
        let message = format!("{name} has no function.name");
        return Err(ApiError::field(name, message));
    };
    let arguments = function.get("arguments").map_or_else(|| json!({}), as_object);
    let mut read = Map::new();
    if let Some(id) = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()) {
        read.insert("id".to_owned(), id.into());
    }
    read.insert("type".to_owned(), "function".into());
    read.insert("function".to_owned(), json!({ "name": called, "arguments": arguments }));
    Ok(Value::Object(read))
}

/// Arguments as an object if their text is one; no text stands for none.
fn as_object(arguments: &Value) -> Value {
    match arguments {
        Value::Null => json!({}),
        Value::String(text) => arguments_of(text),
        other => other.clone(),
    }
}

/// Gives an id to each call that has none, and its id to each result that does not name its call: Ollama's clients send
/// neither. The ids depend on the places of the calls only, so that the prompt of the next request begins with the
/// same tokens.
pub(super) fn connect(messages: &mut [Message]) {
    let mut count = 0;
    let mut open: VecDeque<(String, String)> = VecDeque::new();
    for message in messages {
        if let Some(Value::Array(calls)) = message.fields.get_mut("tool_calls") {
            open.clear();
            for call in calls {
                if call.get("id").is_none() {
                    call["id"] = short_id(count).into();
                }
                count += 1;
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                open.push_back((text(&call["function"]["name"]), text(&call["id"])));
            }
        }
        if message.role != "tool" {
            continue;
        }
        let field = |name: &str| message.fields.get(name).and_then(Value::as_str);
        let is_of = |(name, id): &(String, String)| match field("tool_call_id") {
            Some(own) => own == id,
            None => field("name").is_none_or(|own| own == name),
        };
        let at = open.iter().position(is_of);
        let Some((_, id)) = at.and_then(|at| open.remove(at)) else { continue };
        message.fields.entry("tool_call_id".to_owned()).or_insert(id.into());
    }
}
