//! Calls and their results in conversations.

use serde_json::{Value, json};

use super::ToolCall;
use crate::chat::Message;
use crate::parts::Answer;

impl Message {
    /// With calls of functions after its text, in the form that chat templates know.
    #[must_use]
    pub fn calls<'a>(self, calls: impl IntoIterator<Item = &'a ToolCall>) -> Message {
        let calls: Vec<Value> = calls.into_iter().map(in_template_form).collect();
        if calls.is_empty() { self } else { self.field("tool_calls", calls) }
    }

    /// The result of a call, which goes on with the model's next message.
    pub fn result(call: &ToolCall, content: impl Into<String>) -> Message {
        let message = Message::new("tool", content);
        message.field("tool_call_id", &*call.id).field("name", &*call.name)
    }
}

impl Answer {
    /// The message of the model for the conversation, with its calls and its thoughts, which templates leave out where they
    /// are not to be repeated.
    pub fn message(&self) -> Message {
        let message = Message::assistant(&*self.text).calls(&self.calls);
        match self.thoughts.is_empty() {
            true => message,
            false => message.field("reasoning_content", &*self.thoughts),
        }
    }
}

fn in_template_form(call: &ToolCall) -> Value {
    let arguments = arguments_of(&call.arguments);
    json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": arguments },
    })
}

/// The arguments of a call as chat templates expect them: an object if their text is one. No text stands for no arguments; any
/// other text stays.
pub fn arguments_of(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => object,
        Ok(Value::Null) => json!({}),
        _ => text.into(),
    }
}
