//! Renders conversations to prompts with the chat template of the weight file.
//!
//! Templates are Jinja programs written for Python. They behave here as they do there: block tags
//! leave no blank lines, strings have Python's methods, and `raise_exception` becomes
//! [`ChatError::Refused`]. The rendered prompt contains control tokens as text: encode it with
//! [`Special::Parse`](crate::tokenizer::Special::Parse).

mod environment;
mod error;
mod metadata;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::SystemTime;

use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use serde::{Deserialize, Serialize};

pub use error::ChatError;

use crate::tokenizer::Tokenizer;

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// The speaker: usually `system`, `user` or `assistant`.
    pub role: String,
    /// The text.
    pub content: String,
}

impl Message {
    /// A message of `role`.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into() }
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
    /// The current time, which templates may read as a date in UTC; `None` leaves them their own.
    pub now: Option<SystemTime>,
    /// Variables of particular templates, such as `enable_thinking`.
    pub variables: BTreeMap<String, serde_json::Value>,
}

/// A compiled chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    bos: String,
    eos: String,
}

/// Name of the only template in the environment.
const NAME: &str = "chat";

impl ChatTemplate {
    /// Compiles `source`; `bos` and `eos` are the texts of the begin and end tokens.
    ///
    /// # Errors
    /// If `source` is not a valid template.
    pub fn new(source: &str, bos: &str, eos: &str) -> Result<Self, ChatError> {
        let mut environment = environment::like_python()?;
        environment
            .add_template_owned(NAME, environment::without_training_marks(source))
            .map_err(ChatError::invalid)?;
        Ok(Self { environment, source: source.into(), bos: bos.into(), eos: eos.into() })
    }

    /// Compiles `source` with the begin and end tokens of `tokenizer`.
    ///
    /// # Errors
    /// If `source` is not a valid template.
    pub fn for_tokenizer(source: &str, tokenizer: &Tokenizer) -> Result<Self, ChatError> {
        let text = |id: Option<u32>| id.and_then(|id| tokenizer.token_text(id)).unwrap_or_default();
        Self::new(source, text(tokenizer.bos()), text(tokenizer.eos()))
    }

    /// The prompt for `messages`, in order.
    ///
    /// # Errors
    /// If the template rejects the conversation or fails on it.
    pub fn render(
        &self,
        messages: &[Message],
        add_generation_prompt: bool,
    ) -> Result<String, ChatError> {
        self.render_with(messages, &ChatOptions { add_generation_prompt, ..ChatOptions::default() })
    }

    /// [`render`](Self::render) with all options.
    ///
    /// # Errors
    /// If the template rejects the conversation or fails on it.
    pub fn render_with(
        &self,
        messages: &[Message],
        options: &ChatOptions,
    ) -> Result<String, ChatError> {
        let date = options.now.map(environment::date_function);
        let fixed = context! {
            messages => Serde(messages),
            add_generation_prompt => options.add_generation_prompt,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
            tools => Value::from(()),
            documents => Value::from(()),
        };
        let date = match date {
            Some(date) => context! { strftime_now => date },
            None => context! {},
        };
        let variables = Value::from(Serde(&options.variables));
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(context! { ..variables, ..date, ..fixed }))
            .map_err(ChatError::failed)
    }

    /// The template's source, as stored in the file.
    pub fn source(&self) -> &str {
        &self.source
    }
}
