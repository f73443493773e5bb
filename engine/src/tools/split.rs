//! Messages with several calls, for templates that show one for each message.

use serde_json::Value;

use crate::chat::Message;

/// The messages, in which each call has a message of its own with its results after it. What else a message has stays with its first call.
pub(super) fn split(messages: Vec<Message>) -> Vec<Message> {
    let mut written = Vec::with_capacity(messages.len());
    let mut messages = messages.into_iter().peekable();
    while let Some(message) = messages.next() {
        let calls = match message.fields.get("tool_calls") {
            Some(Value::Array(calls)) if calls.len() > 1 => calls.clone(),
            _ => {
                written.push(message);
                continue;
            }
        };
        let mut results = Vec::new();
        while let Some(result) = messages.next_if(|next| next.role == "tool") {
            results.push(Some(result));
        }
        let mut first = Some(message);
        for (number, call) in calls.into_iter().enumerate() {
            let id = call.get("id").cloned();
            let message = first.take().unwrap_or_else(|| Message::assistant(""));
            written.push(message.field("tool_calls", vec![call]));
            for (place, result) in results.iter_mut().enumerate() {
                let is_of_call = |result: &mut Message| match result.fields.get("tool_call_id") {
                    Some(of) => Some(of) == id.as_ref(),
                    None => place == number,
                };
                written.extend(result.take_if(is_of_call));
            }
        }
        written.extend(results.into_iter().flatten());
    }
    written
}
