//! Messages, and how they are rendered.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// One message of a conversation. It can be serialised and deserialised, in the form of OpenAI's interfaces: a body with a list
/// of messages is a `Vec<Message>`.
///
/// ```
/// use lapwing::{Message, serde_json};
///
/// let sent = r#"[{"role": "user", "content": "Hello", "name": "Ada"}]"#;
/// let messages: Vec<Message> = serde_json::from_str(sent)?;
/// assert_eq!(messages, [Message::user("Hello").field("name", "Ada")]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// The speaker: usually `system`, `user`, `assistant` or `tool`. The model's template decides which others it accepts.
    pub role: String,
    /// The text.
    pub content: String,
    /// Further fields for the model's template, such as `tool_calls`, `tool_call_id` or `name`.
    #[serde(flatten)]
    pub fields: BTreeMap<String, serde_json::Value>,
}

impl Message {
    /// A message of `role`.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into(), fields: BTreeMap::new() }
    }

    /// Adds a field for the model's template, such as `tool_calls`.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        self.fields.insert(name.into(), value.into());
        self
    }

    /// A message of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }

    /// Instructions to the model.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }
}

/// Options of rendering.
#[derive(Clone, Debug, Default)]
pub struct ChatOptions {
    /// End the prompt with the start of the model's message.
    pub add_generation_prompt: bool,
    /// End the prompt inside of the last message, which the model continues: with its text, or before white space that
    /// the template trims. The start of another message is then left out.
    pub continue_final_message: bool,
    /// The time that templates read as the date, in the system's time zone; `None` is the time of rendering.
    pub now: Option<SystemTime>,
    /// Variables of particular templates, such as `enable_thinking`, or `tools`: the descriptions of functions
    /// that the model may call.
    pub variables: BTreeMap<String, serde_json::Value>,
}
