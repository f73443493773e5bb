//! Checks of requests for tokens, before anything is computed.

use lapwing_actors::RunError;

use super::Engine;
use crate::error::Error;
use crate::request::Request;

impl Engine {
    /// Checks that the model generates, that the sampling settings are valid, and that only logits are
    /// biased that the model computes.
    pub(super) fn check(&self, request: &Request) -> Result<(), Error> {
        self.check_generates()?;
        request.sampling.check()?;
        let graph = &self.inner.explainer.parts.graph;
        let vocab = graph.value(graph.output()).width;
        match request.sampling.logit_bias.iter().find(|(id, _)| *id as usize >= vocab) {
            Some((id, _)) => Err(Error::bias(*id, vocab)),
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
