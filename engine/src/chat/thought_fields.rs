//! Thoughts of earlier messages, under the names that templates read.

use serde_json::Value;

use super::Message;

/// The name under which messages have them.
const FIELD: &str = "reasoning_content";
/// Names that templates read in its place: those of gpt-oss and of Solar Open.
const NAMES: [&str; 2] = ["thinking", "reasoning"];

/// Whether a template reads this field of messages.
fn reads(source: &str, name: &str) -> bool {
    let is_member = |(at, _): (usize, &str)| {
        let rest = &source[at + name.len() + 1..];
        !rest.starts_with(|char: char| char.is_alphanumeric() || char == '_')
    };
    let quoted = [format!("'{name}'"), format!("\"{name}\"")];
    source.match_indices(&format!(".{name}")).any(is_member)
        || quoted.iter().any(|name| source.contains(name))
}

/// The messages with their thoughts also under the names that the template reads, if it does not read the usual one.
pub(super) fn named(messages: &[Message], source: &str) -> Option<Vec<Message>> {
    if reads(source, FIELD) || messages.iter().all(|message| !message.fields.contains_key(FIELD)) {
        return None;
    }
    let names: Vec<&str> = NAMES.into_iter().filter(|name| reads(source, name)).collect();
    let mut messages = messages.to_vec();
    for message in &mut messages {
        let Some(thoughts) = message.fields.get(FIELD).cloned() else { continue };
        for name in &names {
            message.fields.entry((*name).to_owned()).or_insert_with(|| thoughts.clone());
        }
    }
    (!names.is_empty()).then_some(messages)
}

/// The messages without the text beside calls and thoughts, for a template that refuses a message with all three.
pub(super) fn without_text(messages: &[Message]) -> Option<Vec<Message>> {
    let mut messages = messages.to_vec();
    let mut is_changed = false;
    for message in &mut messages {
        let has = |name: &str| message.fields.get(name).is_some_and(|value| *value != Value::Null);
        let has_thoughts = has(FIELD) || NAMES.into_iter().any(has);
        if has("tool_calls") && has_thoughts && !message.content.is_empty() {
            message.content.clear();
            is_changed = true;
        }
    }
    is_changed.then_some(messages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{ChatOptions, ChatTemplate};

    #[test]
    fn thoughts_have_the_names_that_a_template_reads() {
        let messages = [Message::assistant("b").field(FIELD, "a")];
        let rows = [
            ("{{ messages[0].thinking }}", Some("a")),
            ("{{ messages[0]['reasoning'] }}", Some("a")),
            ("{{ messages[0].get(\"reasoning\") }}", Some("a")),
            ("{{ messages[0].reasoning_content or messages[0].reasoning }}", None),
            ("{{ messages[0].thinking_mode }}", None),
        ];
        for (source, want) in rows {
            let named = named(&messages, source);
            let found = named.as_ref().and_then(|messages| {
                NAMES.iter().find_map(|name| messages[0].fields.get(*name)?.as_str())
            });
            assert_eq!(found, want, "{source}");
        }
    }

    #[test]
    fn a_template_that_refuses_text_beside_thoughts_gets_none() {
        let source = "{% for m in messages %}{% if m.content and m.thinking %}{{ raise_exception('no') }}{% endif %}\
                      {{ m.content }}{{ m.thinking }};{% endfor %}";
        let called = serde_json::json!([{ "function": { "name": "f", "arguments": {} } }]);
        let called = Message::assistant("b").field(FIELD, "a").field("tool_calls", called);
        let template = ChatTemplate::new(source, "", "");
        let rendered = template.render_with(&[Message::user("u"), called], &ChatOptions::default());
        assert_eq!(rendered.expect("a prompt"), "u;a;");
    }
}
