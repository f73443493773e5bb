//! The engine: one model, the actors that run it, and the calls into them.

use std::path::PathBuf;
use std::sync::Arc;

use lapwing_actors::drive::blocking::{BlockingPool, spawn_blocking};
use lapwing_actors::drive::live::{Live, LiveRequest};
use lapwing_actors::message::{Generate, Shutdown, Task};
use lapwing_actors::policy::ClientId;
use lapwing_actors::prefix::PrefixCache;
use lapwing_actors::sample::Sampler;
use lapwing_actors::sequence::AdmissionPermit;
use lapwing_kernels::cpu::{HeadWeights, PackedUsers};
use lapwing_kernels::device::{ModelId, SlotPool};
use lapwing_kernels::kv::{KvSharing, KvStore};
use lapwing_kernels::mask::AttentionRule;
use lapwing_kernels::model::ModelConfig;
use lapwing_kernels::npu::OutlierCounter;
use lapwing_kernels::requant::Requantized;
use lapwing_traces::Recorder;
use tracing::Span;

use crate::chat::ChatTemplate;
use crate::draft::DraftChoice;
use crate::error::Error;
use crate::packed::PackedWeights;
use crate::placement::{Explainer, Placement};
use crate::request::Request;
use crate::rerank::Reranker;
use crate::span::RequestSpan;
use crate::stream::{StreamParts, TokenStream};
use crate::tokenizer::Tokenizer;

mod accessors;
mod attention;
mod builder;
mod cache_events;
mod check;
mod choose_strategy;
mod cost_model;
pub(crate) mod draft_model;
mod drafts;
mod embed;
#[cfg(feature = "fetch")]
mod fetch_apart;
mod fits;
#[cfg(feature = "structured")]
mod grammar;
pub(crate) mod graphs;
mod lister;
mod lock_weights;
mod measure;
mod memory;
mod model_by_name;
mod module;
pub(crate) mod opened;
pub(crate) mod own_cost;
mod plans;
mod predictions;
mod prefix;
mod prefix_settings;
mod prepare;
mod prepares;
mod prompt;
mod ranges;
mod recorded;
mod require_chat;
mod rerank;
mod score;
mod share_kv;
mod slots;
mod start;
mod strategies;
#[cfg(all(test, target_os = "linux"))]
mod tests;
#[cfg(feature = "structured")]
mod tools;

pub use builder::EngineBuilder;
#[cfg(feature = "structured")]
use grammar::Held;
pub use module::Module;
pub use predictions::{BesideStream, PromptGraphs};
use prefix::KeptPrefixes;
use prompt::EnginePrompt;
use strategies::PlacedStrategies;

/// A running engine. Cheap to clone; the actors end when the last clone is dropped.
///
/// All methods may be called from any async runtime, or from several; none of them blocks it.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    config: ModelConfig,
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    reranker: Option<Arc<Reranker>>,
    /// What makes embeddings of pooled hidden states, if these are not the embeddings.
    projection: Option<Arc<HeadWeights>>,
    placement: Placement,
    explainer: Explainer,
    strategies: PlacedStrategies,
    packed: PackedWeights,
    packed_users: PackedUsers,
    /// Decisions of the start that a user should know.
    notes: Vec<String>,
    requantized: Option<Requantized>,
    attention: Option<Vec<AttentionRule>>,
    share_kv: Option<KvSharing>,
    slots: SlotPool,
    kv: Arc<KvStore>,
    prefixes: Option<PrefixCache>,
    kept_prefixes: Option<KeptPrefixes>,
    context: usize,
    chunk_rows: usize,
    permits: usize,
    sequences_max: usize,
    policy: String,
    isa: &'static str,
    draft: DraftChoice,
    /// Counters of devices with int8 activations of fixed scales.
    outliers: Vec<(String, OutlierCounter)>,
    recorder: Recorder,
    #[cfg(feature = "structured")]
    structured: grammar::Structured,
    /// Turns prompts into token ids.
    prompts: BlockingPool,
    live: Live,
}

impl Engine {
    /// Settings of a new engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Starts generating. The stream yields tokens as they are sampled; dropping it cancels the
    /// request. A subscriber of `tracing` sees the request as a span below the present one.
    ///
    /// # Errors
    /// When the request is invalid, its prompt leaves no room in the context, or the engine has too many requests or has
    /// ended. So a service knows the status of its answer before it streams. What is found out later is the stream's last
    /// item: a limit of requests per minute of the queue policy, a sequence that the KV cache cannot hold, and a failure of
    /// the engine.
    ///
    /// ```no_run
    /// # use lapwing::{Engine, Request};
    /// # async fn example(engine: Engine, book: String) -> Result<(), lapwing::Error> {
    /// let answer = match engine.generate(Request::text(book)).await {
    ///     Err(error) if error.is_prompt_too_long() => {
    ///         println!("{error}");
    ///         return Ok(());
    ///     }
    ///     answer => answer?,
    /// };
    /// println!("{} tokens are read", answer.prompt_ids().len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn generate(&self, request: Request) -> Result<TokenStream, Error> {
        let span = RequestSpan::of_generation(&self.inner.path, &request);
        let begun = self.begin(request, span.handle()).await;
        let (stream, span) = span.with(begun)?;
        Ok(stream.within(span))
    }

    async fn begin(&self, request: Request, trace: Span) -> Result<TokenStream, Error> {
        self.check(&request)?;
        let admission = self.inner.live.admit()?;
        let engine = self.clone();
        let submit = move || engine.submit(request, admission, trace);
        self.inner.prompts.spawn(submit).await.map_err(Error::thread)?
    }

    /// As [`generate`](Engine::generate), on the calling thread, for programs without an async
    /// runtime; [`TokenStream::blocking`] then yields the tokens.
    ///
    /// ```no_run
    /// # use lapwing::{Engine, Request};
    /// # fn example() -> Result<(), lapwing::Error> {
    /// let engine = Engine::builder().model("model.gguf").build_blocking()?;
    /// let mut answer = engine.generate_blocking(Request::ask("Why is the sky blue?"))?;
    /// for token in answer.blocking() {
    ///     print!("{}", token?.text);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`generate`](Engine::generate).
    pub fn generate_blocking(&self, request: Request) -> Result<TokenStream, Error> {
        let span = RequestSpan::of_generation(&self.inner.path, &request);
        let admission = self.check(&request).and_then(|()| Ok(self.inner.live.admit()?));
        let trace = span.handle();
        let submitted = admission.and_then(|admission| self.submit(request, admission, trace));
        let (stream, span) = span.with(submitted)?;
        Ok(stream.within(span))
    }

    fn submit(
        &self,
        request: Request,
        admission: AdmissionPermit,
        trace: Span,
    ) -> Result<TokenStream, Error> {
        let inner = &*self.inner;
        #[cfg(feature = "structured")]
        let (request, form) = self.with_tools(request)?;
        let EnginePrompt { ids: prompt_ids, start } = self.prompt(&request, inner.context)?;
        self.check_ids(&prompt_ids)?;
        let prefix = request.prefix_use();
        let room = inner.context.saturating_sub(prompt_ids.len());
        let tokens_max = request.max_tokens.unwrap_or(room).min(room);
        #[cfg(feature = "structured")]
        let Held { constraint, ignored } = self.constraint(&request, start, tokens_max)?;
        let mut sampling = request.sampling;
        let ends: Vec<u32> = inner.tokenizer.eos_ids().collect();
        let stop_ids: Arc<[u32]> = if request.ignore_eos {
            sampling.logit_bias.extend(ends.iter().map(|id| (*id, f32::NEG_INFINITY)));
            Arc::default()
        } else {
            ends.into()
        };
        let sampler = Sampler::new(sampling, &prompt_ids)
            .with_top_logprobs(request.top_logprobs)
            .with_min_tokens(request.min_tokens, Arc::clone(&stop_ids));
        #[cfg(feature = "structured")]
        let sampler = inner.structured.constrained(sampler, constraint);
        let seed = sampler.seed();
        let drafts = inner.draft.drafts().filter(|_| request.drafts);
        let generate = Generate { sampler, stop_ids, tokens_max, drafts };
        let task = Task::Generate(Box::new(generate));
        let live_request = LiveRequest {
            ids: prompt_ids.clone(),
            task,
            urgency: request.urgency,
            prefix,
            client: request.client.map_or_else(ClientId::anonymous, ClientId::from),
            events: tokens_max,
            prompt_progress: request.prompt_progress,
            model: ModelId::default(),
            traced: request.traced,
            trace,
        };
        let detokenizer = inner.tokenizer.detokenizer(&prompt_ids).showing(&request.shown);
        #[cfg(feature = "structured")]
        let detokenizer =
            if request.grammar.is_some() { detokenizer.keeping_spaces() } else { detokenizer };
        let events = inner.live.submit(admission, live_request)?;
        let stream = TokenStream::new(StreamParts {
            events,
            detokenizer,
            stop: request.stop,
            prompt_ids,
            start,
            seed,
            clock: Arc::clone(inner.recorder.clock()),
        });
        #[cfg(feature = "structured")]
        let stream = stream.ignoring(ignored).divided(form);
        Ok(stream)
    }

    /// Ends the engine. `Shutdown::Drain` finishes running requests, `Shutdown::Now` fails them; later
    /// requests are refused. Returns when all actors have ended.
    ///
    /// Weights, keys and values go back to the system when the last clone of the engine is dropped. What
    /// the allocator serves, such as the tokenizer, it may keep for later engines: glibc does so in up to
    /// 8 arenas per core. On two cores, 300 engines of a model of 135 M weights leave 200 to 240 MB, no
    /// more than the first 75; with `MALLOC_ARENA_MAX=1` they leave 115 MB, no more than the first 150.
    ///
    /// # Errors
    /// When the operating system cannot start the thread that waits, or the prefixes cannot be kept.
    pub async fn shutdown(&self, how: Shutdown) -> Result<(), Error> {
        let engine = self.clone();
        let ended = spawn_blocking("shutdown", move || {
            engine.inner.live.shutdown(how);
            engine.inner.prefixes.iter().for_each(PrefixCache::end_events);
            let kept = engine.inner.kept_prefixes.as_ref();
            kept.map_or(Ok(()), |kept| kept.write(&engine.inner.kv))
        });
        ended.await.map_err(Error::thread)?
    }
}
