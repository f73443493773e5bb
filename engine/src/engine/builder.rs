//! Settings of an engine, one method each.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lapwing_actors::drive::blocking::spawn_blocking;
use lapwing_actors::policy::PolicyChoice;
use lapwing_actors::scheduler::Reserve;
use lapwing_kernels::cpu::Activations;
use lapwing_kernels::kv::KvDtype;
use lapwing_kernels::requant::{Requant, Requantized};
use lapwing_kernels::weights::WeightFile;
use lapwing_traces::Recorder;
use lapwing_traces::event::WaitMode;

use super::{Engine, start};
use crate::config::{Settings, WaitLink};
use crate::devices::DeviceSpec;
use crate::draft::DraftChoice;
use crate::error::Error;

/// Settings of an [`Engine`]. Only the model is required.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct EngineBuilder {
    pub(super) settings: Settings,
}

impl EngineBuilder {
    /// The GGUF file; for a split model, any of its files.
    pub fn model(mut self, path: impl Into<PathBuf>) -> EngineBuilder {
        self.settings.model = path.into();
        #[cfg(feature = "fetch")]
        {
            self.settings.model_name = None;
        }
        self
    }

    /// The file of [`model`](EngineBuilder::model).
    pub fn model_file(&self) -> &Path {
        &self.settings.model
    }

    /// Threads of the CPU pool; by default one for each core of [`cores`](EngineBuilder::cores), or all
    /// hardware threads of the machine.
    pub fn threads(mut self, threads: usize) -> EngineBuilder {
        self.settings.threads = Some(threads);
        self
    }

    /// Pins the compute threads of all devices to these logical cores, by the operating system's
    /// numbers: each thread to a core of its own if there are as many threads as cores, otherwise each
    /// to all of them. On a machine with several kinds of core, this chooses the kind. By default no
    /// thread is pinned. Threads that do not compute run anywhere.
    ///
    /// The engine cannot be built if a core does not exist, or if the operating system has no affinity
    /// of threads (it needs Linux or Android).
    pub fn cores(mut self, cores: impl IntoIterator<Item = usize>) -> EngineBuilder {
        // One number beyond what any system has is enough to refuse a range without an end.
        self.settings.cores = Some(cores.into_iter().take(1 << 16).collect());
        self
    }

    /// Instruction set by name (`lapwing devices` lists them); by default the fastest available.
    pub fn isa(mut self, name: impl Into<String>) -> EngineBuilder {
        self.settings.isa = Some(name.into());
        self
    }

    /// Maximum tokens of a sequence, prompt included; by default the model's training context, up to
    /// 8192.
    pub fn context(mut self, tokens: usize) -> EngineBuilder {
        self.settings.context = Some(tokens);
        self
    }

    /// Tokens that the KV cache holds for all sequences together; by default twice the context.
    /// Memory is allocated page by page, as tokens are stored.
    pub fn cache_tokens(mut self, tokens: usize) -> EngineBuilder {
        self.settings.cache_tokens = Some(tokens);
        self
    }

    /// Room in the KV cache that a request finds when it is admitted; by default that of its prompt, and a request may be
    /// preempted when answers fill the cache. With [`Reserve::Peak`] it is admitted only if all answers can be as long as
    /// [`Request::max_tokens`](crate::Request::max_tokens) lets them be, and none but background work is preempted; an answer
    /// without a limit counts as long as the context.
    pub fn reserve(mut self, reserve: Reserve) -> EngineBuilder {
        self.settings.reserve = reserve;
        self
    }

    /// Type of keys and values in the KV cache; by default f16. int8 takes half of that memory and
    /// costs accuracy; f32 takes twice as much.
    pub fn kv(mut self, dtype: KvDtype) -> EngineBuilder {
        self.settings.kv = dtype;
        self
    }

    /// Precision of activations that are multiplied with quantised weights; by default they are
    /// rounded to int8 in blocks. With f32 only rounding errors of f32 sums remain, and matmuls take several
    /// times as long. One scale per row is an error with devices other than CPUs: OpenCL devices multiply
    /// in f32, and the graphs of NPUs quantise in blocks.
    pub fn activations(mut self, activations: Activations) -> EngineBuilder {
        self.settings.activations = activations;
        self
    }

    /// Requantises weights to the form `format` when they are packed: every matrix with more bits per weight
    /// than `format` and rows of whole groups. By default weights are used exactly as
    /// stored. Requantising costs accuracy, and measurements no longer describe the file's own
    /// weights; [`Engine::requantized`] lists what was changed and what was not.
    pub fn requant(mut self, format: Requant) -> EngineBuilder {
        self.settings.requant = Some(format);
        self
    }

    /// Matrices that [`requant`](EngineBuilder::requant) will change; `None` if it is not set. Reads
    /// only the file's header.
    ///
    /// # Errors
    /// When the model cannot be read or is not supported.
    pub fn requantized(&self) -> Result<Option<Requantized>, Error> {
        let settings = self.settled()?;
        let file = WeightFile::open(&settings.model)?;
        Ok(settings.model(&file)?.1)
    }

    /// Maximum prompt tokens in a chunk; by default 512, or with an NPU the rows of its largest graph
    /// (1024). Smaller chunks let other requests run sooner.
    pub fn chunk_rows(mut self, rows: usize) -> EngineBuilder {
        self.settings.chunk_rows = Some(rows);
        self
    }

    /// Maximum sequences computed at the same time; by default 16. Further ones wait in a queue.
    pub fn sequences_max(mut self, sequences: usize) -> EngineBuilder {
        self.settings.sequences_max = Some(sequences);
        self
    }

    /// Maximum requests waiting or running; by default 1024. Further ones are refused.
    pub fn requests_max(mut self, requests: usize) -> EngineBuilder {
        self.settings.requests_max = Some(requests);
        self
    }

    /// Records into `recorder`, and takes its clock; by default each engine has its own recorder.
    /// Nothing is recorded until [`Recorder::set_scope`] selects something. Engines that share a
    /// recorder also share its lanes and number requests and chunks from the same start; give each
    /// engine its own recorder to tell their requests apart.
    pub fn recorder(mut self, recorder: Recorder) -> EngineBuilder {
        self.settings.recorder = Some(recorder);
        self
    }

    /// Adds a device; by default an engine has only the CPU. All devices share the weights, one KV
    /// cache and one buffer pool.
    ///
    /// ```no_run
    /// # use lapwing::Engine;
    /// # use lapwing::devices::DeviceSpec;
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder()
    ///     .model("model.gguf")
    ///     .device(DeviceSpec::cpu())
    ///     .device("npu=systolic:gflops=40".parse()?)
    ///     .strategy("chunk-graph")
    ///     .build_blocking()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn device(mut self, device: DeviceSpec) -> EngineBuilder {
        self.settings.devices.push(device);
        self
    }

    /// Adds several devices, as [`device`](EngineBuilder::device) does one:
    /// `.devices(DeviceSpec::list("phone")?)`.
    pub fn devices(mut self, devices: impl IntoIterator<Item = DeviceSpec>) -> EngineBuilder {
        self.settings.devices.extend(devices);
        self
    }

    /// Chooses the order in which requests are admitted, get prompt rows into a chunk, and keep their
    /// KV pages: by name ([`policy::known`](crate::policy::known) lists the names), or with a
    /// [`QueuePolicy`](crate::policy::QueuePolicy) of the caller's own, of which the engine gets a
    /// clone. By default `fcfs`: first come, first served.
    ///
    /// ```no_run
    /// # use lapwing::Engine;
    /// use lapwing::policy::Fcfs;
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let by_name = Engine::builder().model("model.gguf").policy("fcfs").build_blocking()?;
    /// let by_object = Engine::builder().model("model.gguf").policy(Fcfs).build_blocking()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn policy(mut self, policy: impl Into<PolicyChoice>) -> EngineBuilder {
        self.settings.policy = policy.into();
        self
    }

    /// Chooses the drafter of speculative decoding; by default a layer of the model's file that predicts a second token,
    /// where it has one and that pays ([`DraftChoice::of_file`]); [`DraftChoice::none`] leaves it out. Drafts change no
    /// token, only the speed: [`Summary::drafts`](crate::Summary::drafts) reports what they did.
    ///
    /// ```no_run
    /// # use lapwing::Engine;
    /// use lapwing::draft::DraftChoice;
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine =
    ///     Engine::builder().model("model.gguf").draft(DraftChoice::lookup()).build_blocking()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn draft(mut self, draft: DraftChoice) -> EngineBuilder {
        self.settings.draft = draft;
        self
    }

    /// Places ops on a device regardless of the strategy: `PATTERN=DEVICE`, such as
    /// `layers.*.ffn=npu`. May be called several times; the last matching pattern wins.
    /// [`module`](EngineBuilder::module) is the same as a chain.
    pub fn place(mut self, place: impl Into<String>) -> EngineBuilder {
        self.settings.places.push(place.into());
        self
    }

    /// Longest time that a stream is to wait for a token after the last one, while the prompts of other requests are
    /// computed. A chunk then has the most prompt rows whose predicted time fits. By default, chunks beside a stream have
    /// the fewest rows that keep 94 % of the prefill rate. [`Request::token_gap`](crate::Request::token_gap) takes its place
    /// for one request.
    pub fn token_gap(mut self, gap: Duration) -> EngineBuilder {
        self.settings.token_gap = Some(gap);
        self
    }

    /// Maximum chunks in flight; by default 2 for one device, 4 for two and 8 for more. Beside a stream, chunks with prompt rows are
    /// sent only while fewer chunks are in flight than there are devices.
    pub fn permits(mut self, permits: usize) -> EngineBuilder {
        self.settings.permits = Some(permits);
        self
    }

    /// How the actors of a link wait for messages (fast synchronisation, HeteroLLM section 4). By
    /// default devices that exchange work sleep for the predicted time and then poll in each wait in
    /// which that pays: where waking a parked thread takes at least a hundredth of the wait, and a core
    /// stays free beside the polling thread. In all other waits they park, as other actors do.
    pub fn wait(mut self, link: WaitLink, mode: WaitMode) -> EngineBuilder {
        match link {
            WaitLink::Devices => self.settings.device_wait = Some(mode),
            WaitLink::Scheduler => self.settings.scheduler_wait = Some(mode),
        }
        self
    }

    /// Opens the model and starts the actors. Never blocks the caller's runtime.
    ///
    /// # Errors
    /// When the file is missing, damaged or not supported, a model by name cannot be fetched, a
    /// setting is invalid, or the model cannot answer conversations although
    /// [`require_chat`](EngineBuilder::require_chat) says that it has to.
    pub async fn build(self) -> Result<Engine, Error> {
        #[cfg(feature = "fetch")]
        let (this, _stop) = self.with_stop();
        #[cfg(not(feature = "fetch"))]
        let this = self;
        spawn_blocking("load", move || this.build_blocking()).await.map_err(Error::thread)?
    }

    /// As [`build`](EngineBuilder::build), on the calling thread.
    ///
    /// # Errors
    /// As [`build`](EngineBuilder::build).
    pub fn build_blocking(self) -> Result<Engine, Error> {
        let settings = self.settled()?.into_owned();
        let file = WeightFile::open(&settings.model)?;
        start::start(settings, &file)
    }
}
