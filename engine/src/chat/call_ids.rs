//! Ids of calls of functions, for templates that accept only some.
//!
//! An id has no meaning of its own: it says which result belongs to which call. The templates of Mistral's models
//! accept only ids of nine letters and digits, and conversations may have begun with another server.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use serde_json::Value;

use super::Message;

/// Characters of an id that every template accepts.
const LENGTH: usize = 9;

/// The characters of such ids.
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// An id that every template accepts, made of a number.
pub fn short_id(mut number: u64) -> String {
    let mut id = String::with_capacity(LENGTH);
    for _ in 0..LENGTH {
        id.push(char::from(ALPHABET[(number % 62) as usize]));
        number /= 62;
    }
    id
}

/// The messages with arguments of calls as text in JSON, if they have any that are no text.
pub(super) fn with_text(messages: &[Message]) -> Option<Vec<Message>> {
    let mut is_changed = false;
    let mut messages = messages.to_vec();
    for message in &mut messages {
        let calls = message.fields.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            let Some(arguments) = call.pointer_mut("/function/arguments") else { continue };
            if !arguments.is_string() {
                *arguments = arguments.to_string().into();
                is_changed = true;
            }
        }
    }
    is_changed.then_some(messages)
}

/// The messages with other ids for calls, if they have ids that some templates refuse. Equal ids stay equal.
pub(super) fn shortened(messages: &[Message]) -> Option<Vec<Message>> {
    let mut is_changed = false;
    let mut shorten = |id: &mut Value| {
        if let Value::String(text) = id
            && !(text.len() == LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        {
            let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&*text);
            *text = short_id(hash);
            is_changed = true;
        }
    };
    let mut messages = messages.to_vec();
    for message in &mut messages {
        if let Some(id) = message.fields.get_mut("tool_call_id") {
            shorten(id);
        }
        let calls = message.fields.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            if let Some(id) = call.get_mut("id") {
                shorten(id);
            }
        }
    }
    is_changed.then_some(messages)
}
