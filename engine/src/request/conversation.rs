//! How a conversation becomes a prompt, and what belongs to its answer.

use std::time::SystemTime;

use super::Request;

/// How the prompt of a conversation ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptEnd {
    /// With the start of the model's message.
    #[default]
    NewMessage,
    /// Inside of the last message, which the model continues.
    LastMessage,
    /// After the last message.
    Nothing,
}

/// What becomes of the thoughts of a model whose chat template has tags for them, such as `<think>`.
#[cfg(feature = "structured")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Thoughts {
    /// They are text like any other: a grammar holds for them as for the rest. In an answer that is
    /// [divided](Request::divided) they come first, without a limit.
    #[default]
    Text,
    /// They come before the answer, and a grammar applies to the text after them. They are closed after `tokens_max`
    /// tokens. With a grammar they get at most half of the request's tokens, so that there is room for the answer.
    First {
        /// Most tokens of thoughts; `None` for any number.
        tokens_max: Option<usize>,
    },
    /// There are none: if the prompt of a conversation opens them, it closes them at once.
    None,
}

impl Request {
    /// Sets a variable of the model's chat template, such as `enable_thinking`
    /// ([`ChatOptions::variables`](crate::chat::ChatOptions::variables)).
    #[must_use]
    pub fn template_variable(
        mut self,
        name: impl Into<String>,
        value: impl Into<serde_json::Value>,
    ) -> Request {
        self.template_variables.insert(name.into(), value.into());
        self
    }

    /// Sets the time that the model's chat template reads as the date, in place of that of the call.
    #[must_use]
    pub fn now(self, now: SystemTime) -> Request {
        Request { now: Some(now), ..self }
    }

    /// Sets how the prompt of a conversation ends: [`PromptEnd::LastMessage`] lets the model continue the last message
    /// instead of beginning one.
    #[must_use]
    pub fn prompt_end(mut self, end: PromptEnd) -> Request {
        self.prompt_end = end;
        self
    }

    /// Sets what becomes of the model's thoughts.
    #[cfg(feature = "structured")]
    #[must_use]
    pub fn thoughts(mut self, thoughts: Thoughts) -> Request {
        self.thoughts = thoughts;
        self
    }

    /// Writes a control token into the text, which otherwise has none of them.
    #[must_use]
    pub fn show(mut self, token: impl Into<String>) -> Request {
        self.shown.push(token.into());
        self
    }
}
