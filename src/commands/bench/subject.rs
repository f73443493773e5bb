//! The engine that is measured.

use std::time::Duration;

use lapwing::{Engine, EngineBuilder, Prompt, Request, RequestTimes, Shutdown};

use crate::cli::failure::Failure;
use crate::cli::profiles::with_stored;
use crate::cli::resolve::open_as_is;
use crate::cli::session::Session;

/// The engine that runs the tests. A prompt that prepares graphs on the spot runs in a new one, so that
/// each of its runs includes the preparation.
pub(super) struct Subject {
    builder: EngineBuilder,
    engine: Option<Engine>,
    /// Whether a new engine runs another prompt before a measured one.
    warm_up: bool,
}

impl Subject {
    /// Opens an engine with the stored profile of its devices.
    pub(super) async fn open(
        builder: EngineBuilder,
        warm_up: bool,
        session: &Session,
    ) -> Result<Subject, Failure> {
        let builder = with_stored(builder, session);
        let engine = Some(open_as_is(builder.clone(), session).await?);
        Ok(Subject { builder, engine, warm_up })
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

    /// Times of a request that generates so many tokens.
    pub(super) async fn times(
        &self,
        ids: Vec<u32>,
        tokens: usize,
    ) -> Result<RequestTimes, Failure> {
        let request = Request::new(Prompt::Ids(ids)).greedy().ignore_eos().max_tokens(tokens);
        let mut stream = self.engine()?.generate(request).await?;
        while let Some(token) = stream.next().await {
            token?;
        }
        match stream.summary() {
            Some(summary) if summary.times.generated_tokens == tokens => Ok(summary.times),
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
