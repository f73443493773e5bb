//! The engine that is measured.

use std::time::Duration;

use lapwing_engine::draft::DraftStats;
use lapwing_engine::{Engine, EngineBuilder, Prompt, Request, RequestTimes, Shutdown};

use crate::cli::failure::Failure;
use crate::cli::opening::{open_as_is, with_stored};
use crate::cli::session::Session;

/// The engine that runs the tests. A prompt that prepares graphs on the spot runs in a new one, so that
/// each of its runs includes the preparation.
pub(super) struct Subject {
    builder: EngineBuilder,
    engine: Option<Engine>,
    /// Whether a new engine runs another prompt before a measured one.
    warm_up: bool,
    /// Probability with which drafted tokens are accepted; `None` if the model chooses.
    acceptance: Option<f32>,
}

/// A completed generation.
pub(super) struct Generation {
    pub(super) ids: Vec<u32>,
    pub(super) times: RequestTimes,
    pub(super) drafts: Option<DraftStats>,
}

impl Subject {
    /// Opens an engine with the stored profile and plans of its devices.
    pub(super) async fn open(
        builder: EngineBuilder,
        warm_up: bool,
        session: &Session,
    ) -> Result<Subject, Failure> {
        // The strategy itself is measured, so requests wait for its graphs.
        let builder = with_stored(builder.wait_for_graphs(true), session);
        let engine = Some(open_as_is(builder.clone(), session).await?);
        Ok(Subject { builder, engine, warm_up, acceptance: None })
    }

    /// Accepts drafted tokens with this probability, if it is given.
    pub(super) fn accepting(self, acceptance: Option<f32>) -> Subject {
        Subject { acceptance, ..self }
    }

    /// Whether drafts leave an answer as it is.
    pub(super) fn drafts_change_nothing(&self) -> bool {
        self.acceptance.is_none()
    }

    /// The present engine.
    pub(super) fn engine(&self) -> Result<&Engine, Failure> {
        self.engine.as_ref().ok_or_else(|| Failure::failed("the measured engine has ended"))
    }

    /// Time from the admission of a prompt to the token that follows.
    pub(super) async fn prefill(&mut self, ids: Vec<u32>) -> Result<Duration, Failure> {
        if self.engine()?.prepares_on_the_spot(ids.len())? {
            self.renew(ids.len()).await?;
        }
        Ok(self.times(ids, 1).await?.prefill())
    }

    /// Times of a request that generates so many tokens without drafts.
    pub(super) async fn times(
        &self,
        ids: Vec<u32>,
        tokens: usize,
    ) -> Result<RequestTimes, Failure> {
        Ok(self.generation(ids, tokens, false).await?.times)
    }

    /// A request that generates so many tokens, with or without drafts.
    pub(super) async fn generation(
        &self,
        ids: Vec<u32>,
        tokens: usize,
        drafts: bool,
    ) -> Result<Generation, Failure> {
        let request = Request::new(Prompt::Ids(ids)).greedy().ignore_eos().max_tokens(tokens);
        let request = match self.acceptance {
            Some(rate) => request.draft_acceptance(rate),
            None => request,
        };
        let mut stream = self.engine()?.generate(request.drafts(drafts)).await?;
        let mut ids = Vec::with_capacity(tokens);
        while let Some(token) = stream.next().await {
            ids.push(token?.id);
        }
        match stream.summary() {
            Some(summary) if summary.times.generated_tokens == tokens => {
                Ok(Generation { ids, times: summary.times, drafts: summary.drafts.clone() })
            }
            _ => Err(Failure::failed(format!("the engine did not generate {tokens} tokens"))),
        }
    }

    /// Ends the engine and makes another. To warm up, it runs a prompt that needs none of the graphs of
    /// a prompt of `length` tokens.
    async fn renew(&mut self, length: usize) -> Result<(), Failure> {
        self.shutdown().await?;
        // Two engines at a time would take twice the memory.
        self.engine = None;
        let engine = self.builder.clone().build().await?;
        let other = engine.warm_up_length(length, 1)?.filter(|_| self.warm_up);
        self.engine = Some(engine);
        if let Some(other) = other {
            self.times(vec![0; other], 1).await?;
        }
        Ok(())
    }

    /// Ends the engine after all of its requests.
    pub(super) async fn shutdown(&self) -> Result<(), Failure> {
        match &self.engine {
            Some(engine) => Ok(engine.shutdown(Shutdown::Drain).await?),
            None => Ok(()),
        }
    }
}
