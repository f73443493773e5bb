//! The items of a response's input as the messages of a chat.
//!
//! What the model has said in one turn are several items: its thoughts, a message, and one item for each call. They are
//! one message of the assistant here, as chat templates have it.

use serde_json::{Map, Value, json};

use crate::error::ApiError;

/// The messages of these items.
///
/// # Errors
/// When an item is of a type that this server does not know.
pub(super) fn in_chat_form(items: Vec<Value>) -> Result<Vec<Map<String, Value>>, ApiError> {
    let mut messages = Messages::default();
    for (at, item) in items.into_iter().enumerate() {
        messages.add(at, item)?;
    }
    messages.end_turn();
    Ok(messages.complete)
}

#[derive(Default)]
struct Messages {
    complete: Vec<Map<String, Value>>,
    /// The present turn of the assistant.
    turn: Option<Turn>,
}

/// A turn of the assistant.
#[derive(Default)]
struct Turn {
    thoughts: String,
    content: Option<Value>,
    calls: Vec<Value>,
}

impl Messages {
    fn add(&mut self, at: usize, item: Value) -> Result<(), ApiError> {
        let kind = item["type"].as_str().unwrap_or("message");
        match (kind, item["role"].as_str()) {
            ("reasoning", _) => self
                .turn(|turn| turn.content.is_none() && turn.calls.is_empty())
                .thoughts
                .push_str(&thoughts_of(&item)),
            ("function_call", _) => self.turn(|_| true).calls.push(json!({
                "id": item["call_id"],
                "type": "function",
                "function": { "name": item["name"], "arguments": item["arguments"] },
            })),
            ("message", Some("assistant")) => {
                self.turn(|turn| turn.content.is_none() && turn.calls.is_empty()).content =
                    Some(item["content"].clone());
            }
            ("function_call_output", _) => self.message(json!({
                "role": "tool", "tool_call_id": item["call_id"], "content": item["output"],
            })),
            ("message", _) => self.message(item),
            (kind, _) => {
                let message =
                    format!("input[{at}] is of type '{kind}', which this server does not know");
                return Err(ApiError::field(&format!("input[{at}].type"), message));
            }
        }
        Ok(())
    }

    /// The present turn if `fits` says that it goes on, or else a new one.
    fn turn(&mut self, fits: impl Fn(&Turn) -> bool) -> &mut Turn {
        if !self.turn.as_ref().is_some_and(fits) {
            self.end_turn();
        }
        self.turn.get_or_insert_default()
    }

    /// Adds a message of another speaker.
    fn message(&mut self, message: Value) {
        self.end_turn();
        if let Value::Object(message) = message {
            self.complete.push(message);
        }
    }

    fn end_turn(&mut self) {
        let Some(Turn { thoughts, content, calls }) = self.turn.take() else { return };
        let mut message = Map::new();
        message.insert("role".to_owned(), "assistant".into());
        message.insert("content".to_owned(), content.unwrap_or_default());
        if !thoughts.is_empty() {
            message.insert("reasoning_content".to_owned(), thoughts.into());
        }
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), calls.into());
        }
        self.complete.push(message);
    }
}

/// The thoughts of an item, or else their summary.
fn thoughts_of(item: &Value) -> String {
    let texts = |field: &str| -> String {
        let parts = item[field].as_array().into_iter().flatten();
        parts.filter_map(|part| part["text"].as_str()).collect()
    };
    match texts("content") {
        whole if whole.is_empty() => texts("summary"),
        whole => whole,
    }
}
