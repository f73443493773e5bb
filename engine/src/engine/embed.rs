//! Embeddings of texts.

use std::collections::VecDeque;

use lapwing_actors::drive::live::{Events, LiveRequest};
use lapwing_actors::message::{StreamEvent, Task};
use lapwing_actors::policy::{ClientId, Urgency};
use lapwing_actors::prefix::PrefixUse;
use lapwing_actors::sequence::AdmissionPermit;
use lapwing_kernels::device::ModelId;
use lapwing_traces::RequestTimes;
use tracing::Span;

use super::Engine;
use crate::embedding::{EmbedRequest, Embedding, Pooler, Pooling};
use crate::error::Error;
use crate::request::{Prompt, Request};
use crate::span::RequestSpan;
use crate::tokenizer::Special;

impl Engine {
    /// The embedding of a text: the model's hidden states after the final norm, pooled into one vector
    /// of [`ModelConfig::width`](crate::ModelConfig::width) values. Works for every model; how useful
    /// the vector is depends on what the model was trained for. Dropping the future cancels the request.
    ///
    /// ```no_run
    /// # use lapwing::Engine;
    /// # async fn example(engine: Engine) -> Result<(), lapwing::Error> {
    /// let boat = engine.embed("a small boat").await?;
    /// let ship = engine.embed("a large ship").await?;
    /// println!("{} values, similarity {:?}", boat.width, boat.cosine(&ship));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the text is empty or exceeds the context, the model's file asks for a pooling that Lapwing
    /// does not have, or the engine fails or has too many requests.
    pub async fn embed(&self, request: impl Into<EmbedRequest>) -> Result<Embedding, Error> {
        self.start_embedding(request.into()).await?.finish().await
    }

    /// The embeddings of several texts, in their order. As many as the engine's maximum of sequences
    /// are computed together, so this is faster than one call after another. Dropping the future
    /// cancels them all.
    ///
    /// ```no_run
    /// # use lapwing::{EmbedRequest, Engine};
    /// # async fn example(engine: Engine) -> Result<(), lapwing::Error> {
    /// let texts = ["a small boat", "a large ship", "a bowl of rice"];
    /// let requests = texts.map(|text| EmbedRequest::text(text).normalized());
    /// let embeddings = engine.embed_batch(requests).await?;
    /// assert_eq!(embeddings.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`embed`](Engine::embed), for the first text that fails; the others are cancelled.
    pub async fn embed_batch(
        &self,
        requests: impl IntoIterator<Item = impl Into<EmbedRequest>>,
    ) -> Result<Vec<Embedding>, Error> {
        let requests: Vec<EmbedRequest> = requests.into_iter().map(Into::into).collect();
        let mut embeddings = Vec::with_capacity(requests.len());
        let mut pending = VecDeque::new();
        for request in requests {
            if pending.len() == self.inner.sequences_max
                && let Some(first) = pending.pop_front()
            {
                embeddings.push(PendingEmbedding::finish(first).await?);
            }
            pending.push_back(self.start_embedding(request).await?);
        }
        for rest in pending {
            embeddings.push(rest.finish().await?);
        }
        Ok(embeddings)
    }

    async fn start_embedding(&self, request: EmbedRequest) -> Result<PendingEmbedding, Error> {
        let span = RequestSpan::of_embedding(&self.inner.path, &request);
        let begun = self.begin_embedding(request, span.handle()).await;
        let (pending, mut span) = span.with(begun)?;
        span.reach(&RequestTimes { prompt_tokens: pending.tokens, ..RequestTimes::default() });
        Ok(PendingEmbedding { span, ..pending })
    }

    async fn begin_embedding(
        &self,
        request: EmbedRequest,
        trace: Span,
    ) -> Result<PendingEmbedding, Error> {
        let admission = self.inner.live.admit()?;
        let engine = self.clone();
        let submit = move || engine.submit_embedding(request, admission, trace);
        self.inner.prompts.spawn(submit).await.map_err(Error::thread)?
    }

    fn submit_embedding(
        &self,
        request: EmbedRequest,
        admission: AdmissionPermit,
        trace: Span,
    ) -> Result<PendingEmbedding, Error> {
        let inner = &*self.inner;
        let pooling = match request.pooling {
            Some(pooling) => pooling,
            None => self.pooling()?,
        };
        let ids = match &request.input {
            Prompt::Text(text) => {
                self.check_text(text, inner.context + 1)?;
                inner.tokenizer.encode(text, Special::Plain, true)
            }
            other => self.prompt(&Request::new(other.clone()), inner.context + 1)?.ids,
        };
        let tokens = ids.len();
        let live_request = LiveRequest {
            ids,
            task: Task::Embed { rows: pooling.positions(tokens) },
            urgency: Urgency::default(),
            prefix: PrefixUse::default(),
            client: request.client.map_or_else(ClientId::anonymous, ClientId::from),
            events: tokens,
            prompt_progress: false,
            model: ModelId::default(),
            traced: request.traced,
            trace,
        };
        let events = inner.live.submit(admission, live_request)?;
        let pooler = Pooler::new(pooling, request.normalized, inner.config.width)
            .projecting(inner.projection.as_ref());
        Ok(PendingEmbedding { events, pooler, tokens, span: RequestSpan::default() })
    }

    /// Values of a pooled embedding: the model's hidden size, or what its products behind the pooling make.
    pub fn embedding_width(&self) -> usize {
        let inner = &*self.inner;
        inner.projection.as_ref().map_or(inner.config.width, |projection| projection.outputs())
    }

    /// How texts are pooled by default: as the model's file says, or by the mean if it says nothing.
    ///
    /// # Errors
    /// When the file asks for a pooling that Lapwing does not have.
    pub fn pooling(&self) -> Result<Pooling, Error> {
        let Some(number) = self.inner.config.pooling_type else { return Ok(Pooling::Mean) };
        Pooling::ALL.get(number as usize).copied().ok_or_else(|| Error::pooling(number))
    }
}

/// A submitted request for an embedding. Dropping it cancels the request.
struct PendingEmbedding {
    events: Events,
    pooler: Pooler,
    tokens: usize,
    span: RequestSpan,
}

impl PendingEmbedding {
    async fn finish(mut self) -> Result<Embedding, Error> {
        loop {
            match self.events.next().await {
                StreamEvent::Hidden(rows) => self.pooler.push(rows),
                StreamEvent::Finished(finished) => {
                    self.span.end("embedded", &finished.times);
                    return Ok(self.pooler.finish(self.tokens, finished.times));
                }
                StreamEvent::Failed(error) => return Err(self.span.fail(error.into())),
                StreamEvent::Prompt(_) | StreamEvent::Token(_) | StreamEvent::Scores(_) => {
                    let error = Error::unexpected("a request for an embedding");
                    return Err(self.span.fail(error));
                }
            }
        }
    }
}
