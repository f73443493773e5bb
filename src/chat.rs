//! Conversations to prompts, by the template in the weight file.
//!
//! Templates are Jinja programs written for Python. They run here as they would there: block
//! tags leave no blank lines, strings have Python's methods, and what a template refuses by
//! `raise_exception` becomes [`ChatError::Refused`]. The rendered prompt contains control
//! tokens as text: encode it with [`Special::Parse`](crate::tokenizer::Special::Parse).

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

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks: usually `system`, `user` or `assistant`.
    pub role: String,
    /// What is said.
    pub content: String,
}

impl Message {
    /// A turn of `role`.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into() }
    }

    /// A turn of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// A turn of the model.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }

    /// Instructions to the model.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }
}

/// How a conversation is rendered.
#[derive(Clone, Debug, Default)]
pub struct ChatOptions {
    /// Ends the prompt with the start of the model's turn.
    pub add_generation_prompt: bool,
    /// The date that templates can ask for, in UTC; without it they use their own.
    pub now: Option<SystemTime>,
    /// Variables particular to a template, such as `enable_thinking`.
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

/// The only template in the environment.
const NAME: &str = "chat";

impl ChatTemplate {
    /// Compiles `source`; `bos` and `eos` are the texts of the tokens it may refer to.
    ///
    /// # Errors
    /// If `source` is no valid template.
    pub fn new(source: &str, bos: &str, eos: &str) -> Result<Self, ChatError> {
        let mut environment = environment::like_python()?;
        environment
            .add_template_owned(NAME, environment::without_training_marks(source))
            .map_err(ChatError::invalid)?;
        Ok(Self { environment, source: source.into(), bos: bos.into(), eos: eos.into() })
    }

    /// Compiles `source` for the tokens of `tokenizer`.
    ///
    /// # Errors
    /// If `source` is no valid template.
    pub fn for_tokenizer(source: &str, tokenizer: &Tokenizer) -> Result<Self, ChatError> {
        let text = |id: Option<u32>| id.and_then(|id| tokenizer.token_text(id)).unwrap_or_default();
        Self::new(source, text(tokenizer.bos()), text(tokenizer.eos()))
    }

    /// The prompt for `messages`, in the order they were said.
    ///
    /// # Errors
    /// If the template refuses the conversation or fails on it.
    pub fn render(
        &self,
        messages: &[Message],
        add_generation_prompt: bool,
    ) -> Result<String, ChatError> {
        self.render_with(messages, &ChatOptions { add_generation_prompt, ..ChatOptions::default() })
    }

    /// [`render`](Self::render) with everything that can be chosen.
    ///
    /// # Errors
    /// If the template refuses the conversation or fails on it.
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

    /// The template as the file has it.
    pub fn source(&self) -> &str {
        &self.source
    }
}
