//! The engine: a model, its actors, and the door to them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::RunError;
use lapwing_actors::drive::live::{Live, LiveDevice, LiveParts, LiveRequest};
use lapwing_actors::drive::off_thread::off_thread;
use lapwing_actors::drive::wait::Waits;
use lapwing_actors::message::{Generate, Phase, Shutdown, StreamEvent, Task};
use lapwing_actors::plan::cost::Modelled;
use lapwing_actors::plan::planner::{Planner, PlannerParts};
use lapwing_actors::plan::strategy::{ChunkShape, CpuOnly};
use lapwing_actors::policy::Fcfs;
use lapwing_actors::sample::Sampler;
use lapwing_actors::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use lapwing_actors::sequence::Ticket;
use lapwing_kernels::cpu::{Cpu, CpuDevice, CpuDeviceParts};
use lapwing_kernels::device::{Device, DeviceInfo, DeviceKind, SlotPool};
use lapwing_kernels::kv::{KvPool, KvStore};
use lapwing_kernels::model::{Model, ModelConfig};
use lapwing_kernels::weights::WeightFile;
use lapwing_traces::{OsClock, Recorder, RecorderConfig};

use crate::chat::ChatTemplate;
use crate::config::{Chosen, Settings};
use crate::error::Error;
use crate::placement::Placement;
use crate::request::{Prompt, Request};
use crate::sampling::random_seed;
use crate::stream::{StreamParts, TokenStream};
use crate::tokenizer::{Special, Tokenizer};

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
    placement: Placement,
    context: usize,
    chunk_rows: usize,
    recorder: Recorder,
    live: Live,
}

/// Settings of an [`Engine`]. Only the model is needed.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct EngineBuilder {
    settings: Settings,
}

impl EngineBuilder {
    /// A GGUF file; of a split file any part.
    pub fn model(mut self, path: impl Into<PathBuf>) -> EngineBuilder {
        self.settings.model = path.into();
        self
    }

    /// Threads of the CPU pool; by default all that the machine can run at once.
    pub fn threads(mut self, threads: usize) -> EngineBuilder {
        self.settings.threads = Some(threads);
        self
    }

    /// Instruction set by its name (`lapwing devices` lists them); by default the best one.
    pub fn isa(mut self, name: impl Into<String>) -> EngineBuilder {
        self.settings.isa = Some(name.into());
        self
    }

    /// Most tokens of a sequence, prompt included; by default what the model was trained for,
    /// up to 8192.
    pub fn context(mut self, tokens: usize) -> EngineBuilder {
        self.settings.context = Some(tokens);
        self
    }

    /// Tokens that the KV cache holds for all sequences together; by default twice the
    /// context. Memory is taken only where tokens are.
    pub fn cache_tokens(mut self, tokens: usize) -> EngineBuilder {
        self.settings.cache_tokens = Some(tokens);
        self
    }

    /// Most prompt tokens in a chunk; by default 512. Smaller chunks let other requests get
    /// their turn sooner.
    pub fn chunk_rows(mut self, rows: usize) -> EngineBuilder {
        self.settings.chunk_rows = Some(rows);
        self
    }

    /// Most sequences computed at the same time; by default 16. More wait in a queue.
    pub fn sequences_max(mut self, sequences: usize) -> EngineBuilder {
        self.settings.sequences_max = Some(sequences);
        self
    }

    /// Most requests that wait or run; by default 1024. More are refused.
    pub fn requests_max(mut self, requests: usize) -> EngineBuilder {
        self.settings.requests_max = Some(requests);
        self
    }

    /// Records into `recorder`, whose clock becomes the engine's; by default the engine has one
    /// of its own. Nothing is recorded before [`Recorder::set_scope`] says what. Engines that
    /// share a recorder share its lanes, and number their requests and chunks alike: to tell
    /// their requests apart, give each its own.
    pub fn recorder(mut self, recorder: Recorder) -> EngineBuilder {
        self.settings.recorder = Some(recorder);
        self
    }

    /// Opens the model and starts the actors. The work is done beside the caller's runtime.
    ///
    /// # Errors
    /// When the file is missing, broken or not supported, or a setting makes no sense.
    pub async fn build(self) -> Result<Engine, Error> {
        off_thread("load", move || self.build_blocking()).await.map_err(Error::thread)?
    }

    /// As [`build`](EngineBuilder::build), on the calling thread.
    ///
    /// # Errors
    /// As [`build`](EngineBuilder::build).
    pub fn build_blocking(self) -> Result<Engine, Error> {
        let path = self.settings.model.clone();
        let file = WeightFile::open(&path)?;
        let model = Model::from_weights(&file)?;
        let chosen = self.settings.choose(&model.config)?;
        let tokenizer = Tokenizer::from_metadata(file.metadata())?;
        let template = ChatTemplate::from_metadata(file.metadata(), &tokenizer)?;
        let recorder = self.settings.recorder.unwrap_or_else(|| {
            Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default())
        });
        let (live, placement) = start(&model, &file, &chosen, recorder.clone())?;
        set_facts(&recorder, &path, &model.config, (&chosen, &placement));
        Ok(Engine {
            inner: Arc::new(Inner {
                path,
                config: model.config,
                tokenizer,
                template,
                placement,
                context: chosen.context,
                chunk_rows: chosen.chunk_rows,
                recorder,
                live,
            }),
        })
    }
}

/// Tells the recorder what it records.
fn set_facts(
    recorder: &Recorder,
    path: &Path,
    config: &ModelConfig,
    (chosen, placement): (&Chosen, &Placement),
) {
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
    recorder.set_meta("program", concat!("lapwing ", env!("CARGO_PKG_VERSION")));
    recorder.set_meta("clock", "monotonic");
    recorder.set_meta("model", &name);
    recorder.set_meta("model path", &path.to_string_lossy());
    recorder.set_meta("architecture", config.arch.name);
    recorder.set_meta("strategy", &placement.strategy);
    recorder.set_meta("isa", chosen.isa.name());
    recorder.set_meta("threads", &chosen.threads.to_string());
    recorder.set_meta("context", &chosen.context.to_string());
    recorder.set_meta("chunk rows", &chosen.chunk_rows.to_string());
}

fn start(
    model: &Model,
    file: &WeightFile,
    chosen: &Chosen,
    recorder: Recorder,
) -> Result<(Live, Placement), Error> {
    let graph = Arc::new(model.graph.clone());
    let logits = graph.output();
    let kv = Arc::new(KvStore::new(chosen.layout, chosen.pages)?);
    let slots = SlotPool::default();
    let cpu = Cpu::new(chosen.threads, chosen.isa);
    let threads = cpu.pool().threads();
    if threads < chosen.threads {
        let most = format!("at most {threads}, which is what the system gives");
        return Err(Error::config("threads", chosen.threads, &most));
    }
    let parts = CpuDeviceParts {
        name: "cpu".to_owned(),
        cpu,
        graph: Arc::clone(&graph),
        kv,
        slots: slots.clone(),
    };
    let device = CpuDevice::new(parts, file)?;
    let infos = vec![DeviceInfo {
        name: device.name().to_owned(),
        kind: DeviceKind::Cpu,
        sizes: Vec::new(),
    }];
    let planner = Planner::new(PlannerParts {
        graph: Arc::clone(&graph),
        devices: infos.clone(),
        cost: Arc::new(Modelled { devices: Vec::new(), sync: Duration::ZERO, copy_rate: 1e9 }),
        strategy: Arc::new(CpuOnly),
        chunk_rows: chosen.chunk_rows,
    });
    let strategy_name = planner.strategy().to_owned();
    let mut scheduler = Scheduler::new(SchedulerParts {
        config: SchedulerConfig {
            context: chosen.context,
            sequences_max: chosen.sequences_max,
            permits: chosen.permits,
            vocab: graph.value(logits).width,
        },
        planner,
        kv: KvPages { pool: KvPool::new(chosen.pages), layout: chosen.layout },
        policy: Box::new(Fcfs),
    })?;
    let shape =
        ChunkShape { phase: Phase::Prefill, rows: chosen.chunk_rows, selected: 1, context: 0 };
    let names: Vec<String> = infos.into_iter().map(|info| info.name).collect();
    let placement =
        Placement::new(&graph, &*scheduler.route(shape)?, &names, strategy_name, chosen);
    let devices = vec![LiveDevice { device: Box::new(device), time: None }];
    let waits = Waits::for_devices(devices.len());
    let live = Live::start(LiveParts {
        scheduler,
        devices,
        graph,
        slots,
        requests_max: chosen.requests_max,
        permits: chosen.permits,
        waits,
        recorder,
    })
    .map_err(Error::thread)?;
    Ok((live, placement))
}

impl Engine {
    /// Settings of a new engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Starts to generate; the stream yields tokens as they come, and dropping it cancels.
    ///
    /// # Errors
    /// When the request makes no sense or too many are in the engine. Errors that show up
    /// later, such as a prompt that is too long, are the stream's.
    pub async fn generate(&self, request: Request) -> Result<TokenStream, Error> {
        request.sampling.check()?;
        let ticket = self.inner.live.ticket()?;
        let engine = self.clone();
        let submitted = off_thread("prompt", move || engine.submit(request, ticket)).await;
        submitted.map_err(Error::thread)?
    }

    fn submit(&self, request: Request, ticket: Ticket) -> Result<TokenStream, Error> {
        let inner = &*self.inner;
        let prompt_ids = self.prompt_ids(&request.prompt)?;
        let mut sampling = request.sampling;
        if !request.seeded {
            sampling.seed = random_seed();
        }
        let ends: Vec<u32> = inner.tokenizer.eos_ids().collect();
        let stop_ids = if request.ignore_eos {
            sampling.logit_bias.extend(ends.iter().map(|id| (*id, f32::NEG_INFINITY)));
            Vec::new()
        } else {
            ends
        };
        let seed = sampling.seed;
        let room = inner.context.saturating_sub(prompt_ids.len());
        let tokens_max = request.max_tokens.unwrap_or(room).min(room);
        let generate = Generate {
            sampler: Sampler::new(sampling, &prompt_ids),
            stop_ids: stop_ids.into(),
            tokens_max,
        };
        let task = Task::Generate(Box::new(generate));
        let live_request = LiveRequest {
            ids: prompt_ids.clone(),
            task,
            events: tokens_max,
            traced: request.traced,
        };
        let events = inner.live.submit(ticket, live_request)?;
        Ok(TokenStream::new(StreamParts {
            events,
            detokenizer: inner.tokenizer.detokenizer(&prompt_ids),
            stop: request.stop,
            prompt_ids,
            seed,
            clock: Arc::clone(inner.recorder.clock()),
        }))
    }

    /// Ids of a prompt.
    ///
    /// # Errors
    /// When the model has no chat template, or its template refuses the conversation.
    pub fn prompt_ids(&self, prompt: &Prompt) -> Result<Vec<u32>, Error> {
        let inner = &*self.inner;
        match prompt {
            Prompt::Text(text) => Ok(inner.tokenizer.encode(text, Special::Parse, true)),
            Prompt::Ids(ids) => Ok(ids.clone()),
            Prompt::Chat(messages) => {
                let template = inner
                    .template
                    .as_ref()
                    .ok_or_else(|| Error::no_template(inner.path.clone()))?;
                let text = template.render(messages, true)?;
                // Templates write the begin token themselves where they want it.
                let ids = inner.tokenizer.encode(&text, Special::Parse, true);
                Ok(without_second_bos(ids, inner.tokenizer.bos()))
            }
        }
    }

    /// Log-probability (natural) of each of `ids` from position `from` on (at least 1), given
    /// all before it; `ids.len() − from` values.
    ///
    /// # Errors
    /// When the ids do not fit the context or the vocabulary, or the engine fails.
    pub async fn score(&self, ids: Vec<u32>, from: usize) -> Result<Vec<f32>, Error> {
        let chunks = ids.len() / self.inner.chunk_rows.max(1) + ids.len();
        let live = &self.inner.live;
        let request =
            LiveRequest { ids, task: Task::Score { from }, events: chunks, traced: false };
        let mut events = live.submit(live.ticket()?, request)?;
        let mut scores = Vec::new();
        loop {
            match events.next().await {
                StreamEvent::Scores(more) => scores.extend(more),
                StreamEvent::Finished(_) => return Ok(scores),
                StreamEvent::Failed(error) => return Err(error.into()),
                StreamEvent::Token(_) => {
                    let reason = "scores were answered with a token".to_owned();
                    let actor = "scheduler".to_owned();
                    return Err(RunError::ActorDied { actor, reason }.into());
                }
            }
        }
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.inner.tokenizer
    }

    /// The model's chat template, if it has one.
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.inner.template.as_ref()
    }

    /// The model's hyper-parameters.
    pub fn model(&self) -> &ModelConfig {
        &self.inner.config
    }

    /// The model's file.
    pub fn model_path(&self) -> &Path {
        &self.inner.path
    }

    /// Most tokens of a sequence, prompt included.
    pub fn context(&self) -> usize {
        self.inner.context
    }

    /// Which device and kernels run what, and why.
    pub fn placement(&self) -> &Placement {
        &self.inner.placement
    }

    /// What the engine records into. Choose with [`Recorder::set_scope`] what is recorded, at
    /// any time; [`Request::traced`] marks single requests.
    pub fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    /// Requests that wait or run.
    pub fn requests(&self) -> usize {
        self.inner.live.requests()
    }

    /// Ends the engine: what is running is finished (`Shutdown::Drain`) or failed
    /// (`Shutdown::Now`), and later requests are refused. Returns when all actors have ended.
    ///
    /// # Errors
    /// When the operating system gives no thread to wait on.
    pub async fn shutdown(&self, how: Shutdown) -> Result<(), Error> {
        let engine = self.clone();
        off_thread("shutdown", move || engine.inner.live.shutdown(how)).await.map_err(Error::thread)
    }
}

fn without_second_bos(mut ids: Vec<u32>, bos: Option<u32>) -> Vec<u32> {
    if let [first, second, ..] = ids[..]
        && first == second
        && Some(first) == bos
    {
        ids.remove(0);
    }
    ids
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("model", &self.inner.path)
            .field("placement", &self.inner.placement)
            .finish_non_exhaustive()
    }
}
