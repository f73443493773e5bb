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
use futures::stream::{self, BoxStream, StreamExt};
use lapwing_cli::engine_options::Offer;
use lapwing_engine::{Engine, EngineStats, Shutdown};
use lapwing_serve::{KvEventsConfig, Mounted, ServeConfig, ServeError, Server};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::answer::Answer;
use crate::{asked, fault, speed, state};

/// What an answer has.
type Items = BoxStream<'static, Result<LLMEngineOutput, DynamoError>>;

/// Time that Dynamo has for the rest after running answers have ended.
const RESERVE: Duration = Duration::from_secs(1);

/// Time between two looks whether all answers have ended.
const LOOK: Duration = Duration::from_millis(20);

/// A worker that serves one model by the engine of this process.
#[derive(Debug)]
pub struct LapwingWorker {
    model: Offer,
    kv_events: KvEventsConfig,
    running: Mutex<Option<Running>>,
}

#[derive(Clone, Debug)]
struct Running {
    engine: Engine,
    state: watch::Receiver<EngineStats>,
    /// Publishes KV events as long as it is there.
    served: Mounted,
}

impl LapwingWorker {
    /// A worker whose engine is not started yet. Without an address, it publishes KV events on a free port of this machine.
    pub fn new(model: Offer, mut kv_events: KvEventsConfig) -> LapwingWorker {
        kv_events.address.get_or_insert_with(|| "tcp://127.0.0.1:0".to_owned());
        LapwingWorker { model, kv_events, running: Mutex::default() }
    }

    /// The engine while it runs.
    pub fn engine(&self) -> Option<Engine> {
        Some(self.running().ok()?.engine)
    }

    /// The publisher of `lapwing serve`, without its HTTP.
    async fn serve(&self, engine: &Engine) -> Result<Mounted, ServeError> {
        let mut config = ServeConfig::default();
        config.kv_events = self.kv_events.clone();
        let server = Server::builder().engine(self.model.name.clone(), engine.clone());
        server.config(config).mount().await
    }

    /// Starts an answer.
    async fn begin(
        &self,
        request: &PreprocessedRequest,
        context: GenerateContext,
    ) -> Result<Items, DynamoError> {
        let running = self.running()?;
        let (request, asked) = asked::of(request, context.metadata(), self.model.temperature)?;
        let tokens = running.engine.generate(request).await.map_err(|error| fault::of(&error))?;
        Ok(Answer::new(tokens, asked, context).stream())
    }

    fn running(&self) -> Result<Running, DynamoError> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.clone().ok_or_else(fault::ended)
    }
}

#[async_trait]
impl LLMEngine for LapwingWorker {
    async fn start(&self, _worker_id: u64) -> Result<EngineConfig, DynamoError> {
        let name = &self.model.name;
        let engine = self.model.engine.clone().timed().build().await;
        let engine = engine.map_err(|error| fault::start(error.to_string()))?;
        engine.notes().iter().for_each(|note| tracing::info!("{note}"));
        let speed = speed::of(&engine).map_err(|error| fault::start(error.to_string()))?;
        tracing::info!(model = name, %speed, "the engine is ready");
        let stats = engine.stats().await.map_err(|error| fault::of(&error))?;
        let config = config(name, &engine, speed);
        let served = self.serve(&engine).await.map_err(|error| fault::start(error.to_string()))?;
        let state = state::observe(engine.clone(), stats);
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Running { engine, state, served });
        Ok(config)
    }

    /// Cancelling is dropping the stream, which ends by itself when the context is stopped. A request that cannot be answered has an error as
    /// its only item: Dynamo takes an error before the stream for a worker that is lost, and sends it nothing for a while.
    async fn generate(
        &self,
        request: PreprocessedRequest,
        context: GenerateContext,
    ) -> Result<Items, DynamoError> {
        let refused = |error| stream::iter([Err(error)]).boxed();
        Ok(self.begin(&request, context).await.unwrap_or_else(refused))
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
        let running = self.running()?;
        if !running.engine.cache_blocks().are_shared {
            return Ok(Vec::new());
        }
        let published = running.served.kv_events().iter().map(|of| KvEventSource::Zmq {
            endpoint: of.address.clone(),
            topic: of.topic.clone(),
            dp_rank: 0,
            image_token_id: None,
        });
        Ok(published.collect())
    }

    async fn setup_metrics(&self, context: MetricsCtx<'_>) -> Result<MetricsBindings, DynamoError> {
        let Running { engine, state, .. } = self.running()?;
        let blocks = engine.cache_blocks();
        let (name, shown) = (self.model.name.clone(), state.clone());
        context.metrics.add_expfmt_callback(Arc::new(move || {
            Ok(lapwing_serve::state_metrics(&name, shown.borrow().clone(), blocks))
        }));
        Ok(MetricsBindings {
            dp_ranks: vec![0],
            on_publisher_ready: Some(Box::new(move |publisher| {
                tokio::spawn(state::publish(publisher, blocks, state));
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
fn config(name: &str, engine: &Engine, speed: Value) -> EngineConfig {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    let blocks = engine.cache_blocks();
    EngineConfig {
        model: name.to_owned(),
        runtime_data: HashMap::from([("lapwing_speed".to_owned(), speed)]),
        llm: Some(LlmRegistration {
            context_length: Some(number(engine.context())),
            kv_cache_block_size: Some(number(blocks.tokens)),
            total_kv_blocks: Some(blocks.count as u64),
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
