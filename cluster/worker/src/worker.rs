//! The engine behind Dynamo's trait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use dynamo_backend_common::{
    DynamoError, EngineConfig, GenerateContext, KvEventSource, LLMEngine, LLMEngineOutput,
    LlmRegistration, MetricsBindings, MetricsCtx, PreprocessedRequest,
};
use dynamo_runtime::config::environment_names::worker::DYN_WORKER_GRACEFUL_SHUTDOWN_TIMEOUT;
use dynamo_runtime::worker::{
    DEFAULT_GRACEFUL_SHUTDOWN_TIMEOUT_DEBUG, DEFAULT_GRACEFUL_SHUTDOWN_TIMEOUT_RELEASE,
};
use futures::stream::BoxStream;
use lapwing_engine::{Engine, EngineStats, Shutdown};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::answer::Answer;
use crate::asked::{self, Asked};
use crate::options::Options;
use crate::{fault, speed, state};

/// Time that Dynamo has for the rest after running answers have ended.
const RESERVE: Duration = Duration::from_secs(1);

/// Time between two looks whether all answers have ended.
const LOOK: Duration = Duration::from_millis(20);

/// A worker that serves one model by the engine of this process.
#[derive(Debug)]
pub struct LapwingWorker {
    options: Options,
    running: Mutex<Option<Running>>,
}

#[derive(Clone, Debug)]
struct Running {
    /// Name that requests use.
    name: String,
    engine: Engine,
    /// Sampling temperature of requests that name none.
    temperature: Option<f32>,
    state: watch::Receiver<EngineStats>,
}

impl LapwingWorker {
    /// A worker whose engine is not started yet.
    pub fn new(options: Options) -> LapwingWorker {
        LapwingWorker { options, running: Mutex::default() }
    }

    /// The engine while it runs.
    pub fn engine(&self) -> Option<Engine> {
        Some(self.running().ok()?.engine)
    }

    fn running(&self) -> Result<Running, DynamoError> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.clone().ok_or_else(fault::ended)
    }
}

#[async_trait]
impl LLMEngine for LapwingWorker {
    async fn start(&self, _worker_id: u64) -> Result<EngineConfig, DynamoError> {
        let offer = self.options.engine.offer(&self.options.model).await;
        let offer = offer.map_err(|error| fault::start(error.to_string()))?;
        let engine = offer.engine.timed().build().await;
        let engine = engine.map_err(|error| fault::start(error.to_string()))?;
        engine.notes().iter().for_each(|note| tracing::info!("{note}"));
        let speed = speed::of(&engine).map_err(|error| fault::start(error.to_string()))?;
        tracing::info!(model = offer.name, %speed, "the engine is ready");
        let stats = engine.stats().await.map_err(|error| fault::of(&error))?;
        let config = config(&offer.name, &engine, &stats, speed);
        let state = state::observe(engine.clone(), stats);
        let running = Running { name: offer.name, engine, temperature: offer.temperature, state };
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
        Ok(config)
    }

    /// Cancelling is dropping the stream, which ends by itself when the context is stopped.
    async fn generate(
        &self,
        request: PreprocessedRequest,
        context: GenerateContext,
    ) -> Result<BoxStream<'static, Result<LLMEngineOutput, DynamoError>>, DynamoError> {
        let running = self.running()?;
        let asked = asked::of(&request, context.metadata(), running.temperature)?;
        let Asked { request, stops, logprobs } = asked;
        let tokens = running.engine.generate(request).await.map_err(|error| fault::of(&error))?;
        Ok(Answer::new(tokens, stops, logprobs, context).stream())
    }

    async fn is_quiescent(&self) -> Result<Option<bool>, DynamoError> {
        Ok(self.engine().map(|engine| engine.requests() == 0))
    }

    /// Lets running answers end, as long as Dynamo waits; the rest fails in the way that lets another worker go on with it.
    async fn cleanup(&self) -> Result<(), DynamoError> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Running { engine, .. }) = running else { return Ok(()) };
        let until = Instant::now() + drain_max();
        while engine.requests() > 0 && Instant::now() < until {
            sleep(LOOK).await;
        }
        engine.shutdown(Shutdown::Now).await.map_err(|error| fault::of(&error))
    }

    async fn kv_event_sources(&self) -> Result<Vec<KvEventSource>, DynamoError> {
        Ok(Vec::new())
    }

    async fn setup_metrics(&self, context: MetricsCtx<'_>) -> Result<MetricsBindings, DynamoError> {
        let Running { name, state, .. } = self.running()?;
        let shown = state.clone();
        context.metrics.add_expfmt_callback(Arc::new(move || {
            Ok(lapwing_serve::state_metrics(&[(name.clone(), shown.borrow().clone())]))
        }));
        Ok(MetricsBindings {
            dp_ranks: vec![0],
            on_publisher_ready: Some(Box::new(|publisher| {
                tokio::spawn(state::publish(publisher, state));
                Ok(())
            })),
        })
    }

    async fn health_check_payload(&self) -> Result<Option<Value>, DynamoError> {
        let token = self.running()?.engine.tokenizer().bos().unwrap_or(0);
        Ok(Some(json!({
            "token_ids": [token],
            "stop_conditions": { "max_tokens": 1 },
            "sampling_options": { "temperature": 0.0 },
        })))
    }
}

/// What the worker says of itself when it registers.
fn config(name: &str, engine: &Engine, stats: &EngineStats, speed: Value) -> EngineConfig {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    EngineConfig {
        model: name.to_owned(),
        runtime_data: HashMap::from([("lapwing_speed".to_owned(), speed)]),
        llm: Some(LlmRegistration {
            context_length: Some(number(engine.context())),
            kv_cache_block_size: Some(state::BLOCK as u32),
            total_kv_blocks: Some(state::blocks(stats.kv_pages)),
            max_num_seqs: Some(engine.sequences_max() as u64),
            max_num_batched_tokens: Some(engine.chunk_rows() as u64),
            ..LlmRegistration::default()
        }),
        ..EngineConfig::default()
    }
}

/// Longest time that running answers have to end.
fn drain_max() -> Duration {
    let given = std::env::var(DYN_WORKER_GRACEFUL_SHUTDOWN_TIMEOUT).ok();
    let given = given.and_then(|seconds| seconds.parse().ok());
    let default = match cfg!(debug_assertions) {
        true => DEFAULT_GRACEFUL_SHUTDOWN_TIMEOUT_DEBUG,
        false => DEFAULT_GRACEFUL_SHUTDOWN_TIMEOUT_RELEASE,
    };
    Duration::from_secs(given.unwrap_or(default)).saturating_sub(RESERVE)
}
