//! Checks of requests for tokens, before anything is computed.

use lapwing_actors::RunError;

use super::Engine;
use crate::chat::ChatError;
use crate::error::Error;
use crate::request::{Prompt, Request};

impl Engine {
    /// Checks that the model generates, that a conversation has messages, that the sampling settings are valid, and that
    /// only logits are biased that the model computes.
    pub(super) fn check(&self, request: &Request) -> Result<(), Error> {
        self.check_generates()?;
        if matches!(&request.prompt, Prompt::Chat(messages) if messages.is_empty()) {
            return Err(ChatError::NoMessages.into());
        }
        request.sampling.check()?;
        #[cfg(feature = "structured")]
        if request.grammar.is_some() || request.tools.is_some() {
            request.sampling.check_constrained()?;
        }
        let graph = &self.inner.explainer.parts.graph;
        let vocab = graph.value(graph.output()).width;
        match request.sampling.logit_bias.iter().find(|(id, _)| *id as usize >= vocab) {
            Some((id, _)) => Err(Error::bias(*id, vocab)),
            None => Ok(()),
        }
    }

    /// Checks that a prompt has ids, and that the model has them. The scheduler would find it out after the caller has a stream.
    pub(super) fn check_ids(&self, ids: &[u32]) -> Result<(), Error> {
        if ids.is_empty() {
            return Err(RunError::EmptyPrompt.into());
        }
        let vocab = self.inner.explainer.parts.graph.vocab();
        match ids.iter().find(|id| **id as usize >= vocab) {
            Some(id) => Err(RunError::TokenId { id: *id, vocab }.into()),
            None => Ok(()),
        }
    }

    /// Checks that the model generates text: every model does but encoders, which make embeddings only
    /// ([`embed`](Engine::embed)). Requests check it, too.
    ///
    /// # Errors
    /// [`RunError::Encoder`] if the model is an encoder.
    pub fn check_generates(&self) -> Result<(), Error> {
        if self.inner.config.arch.is_encoder() {
            return Err(RunError::Encoder.into());
        }
        Ok(())
    }
}
