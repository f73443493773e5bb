//! Prompts as token ids, and where their answers begin.

use lapwing_actors::RunError;

use super::Engine;
use crate::chat::{AnswerStart, ChatOptions, Message};
use crate::error::Error;
#[cfg(feature = "structured")]
use crate::request::Thoughts;
use crate::request::{Prompt, PromptEnd, Request};
use crate::tokenizer::Special;

/// A prompt that the engine can compute.
pub(super) struct EnginePrompt {
    pub(super) ids: Vec<u32>,
    /// Where the answer begins.
    pub(super) start: AnswerStart,
}

impl Engine {
    /// Token ids of a prompt, of any length.
    ///
    /// # Errors
    /// When the model has no chat template, or its template rejects the conversation.
    pub fn prompt_ids(&self, prompt: &Prompt) -> Result<Vec<u32>, Error> {
        self.prompt_ids_of(&Request::new(prompt.clone()))
    }

    /// Token ids of a request's prompt, of any length, with the variables of its template and its tools.
    ///
    /// # Errors
    /// As [`prompt_ids`](Engine::prompt_ids), and when the request cannot have its tools.
    pub fn prompt_ids_of(&self, request: &Request) -> Result<Vec<u32>, Error> {
        #[cfg(feature = "structured")]
        let told = self.told(request)?;
        #[cfg(feature = "structured")]
        let request = &*told;
        Ok(self.prompt(request, usize::MAX)?.ids)
    }

    /// The prompt of a request, if it has fewer than `most` tokens. A text that certainly has more is refused before it is
    /// tokenised, which takes much more time and memory than the text itself.
    pub(super) fn prompt(&self, request: &Request, most: usize) -> Result<EnginePrompt, Error> {
        let prompt = self.tokenised(request, most)?;
        match prompt.ids.len() {
            tokens if tokens >= most => {
                Err(RunError::PromptTooLong { tokens, context: self.inner.context }.into())
            }
            _ => Ok(prompt),
        }
    }

    fn tokenised(&self, request: &Request, most: usize) -> Result<EnginePrompt, Error> {
        let start = AnswerStart::default();
        match &request.prompt {
            Prompt::Text(text) => {
                self.check_text(text, most)?;
                let ids = self.inner.tokenizer.encode(text, Special::Parse, true);
                Ok(EnginePrompt { ids, start })
            }
            Prompt::Ids(ids) => Ok(EnginePrompt { ids: ids.clone(), start }),
            Prompt::Chat(messages) => self.conversation(messages, request, most),
        }
    }

    fn conversation(
        &self,
        messages: &[Message],
        request: &Request,
        most: usize,
    ) -> Result<EnginePrompt, Error> {
        let inner = &*self.inner;
        let template =
            inner.template.as_ref().ok_or_else(|| Error::no_template(inner.path.clone()))?;
        let options = ChatOptions {
            add_generation_prompt: request.prompt_end == PromptEnd::NewMessage,
            continue_final_message: request.prompt_end == PromptEnd::LastMessage,
            now: request.now,
            variables: request.template_variables.clone(),
        };
        let prompt = template.rendered(messages, &options, &inner.tokenizer)?;
        let last = match request.prompt_end {
            PromptEnd::LastMessage => messages.last().map_or("", |last| &last.content),
            _ => "",
        };
        let start = template.start_of(prompt.text(), last);
        #[cfg(feature = "structured")]
        let (prompt, start) = match (request.thoughts, template.closing(start)) {
            (Thoughts::None, Some(closing)) => (prompt.followed_by(&closing), AnswerStart::Thought),
            _ => (prompt, start),
        };
        self.check_text(prompt.text(), most)?;
        Ok(EnginePrompt { ids: prompt.ids(&inner.tokenizer), start })
    }

    /// Refuses a text that certainly has `most` tokens or more, and for a model without a tokenizer one that is no ids.
    pub(super) fn check_text(&self, text: &str, most: usize) -> Result<(), Error> {
        self.inner.tokenizer.check(text)?;
        match self.inner.tokenizer.tokens_at_least(text) {
            tokens if tokens >= most => {
                Err(Error::prompt_too_long(text.len(), tokens, self.inner.context))
            }
            _ => Ok(()),
        }
    }
}
