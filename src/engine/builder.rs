//! Settings of an engine, one method each.

use std::path::PathBuf;
use std::sync::Arc;

use lapwing_actors::drive::blocking::spawn_blocking;
use lapwing_actors::policy::PolicyChoice;
use lapwing_kernels::cpu::Activations;
use lapwing_kernels::kv::KvDtype;
use lapwing_kernels::requant::{Requant, Requantized};
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::strategy::{Strategy, StrategyOptions};
use lapwing_traces::Recorder;
use lapwing_traces::event::WaitMode;

use super::{Engine, start};
use crate::config::{Settings, StrategyChoice, WaitLink};
use crate::devices::DeviceSpec;
use crate::error::Error;

/// Settings of an [`Engine`]. Only the model is needed.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct EngineBuilder {
    pub(super) settings: Settings,
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

    /// How the KV cache stores keys and values; by default as binary16. int8 takes half the memory
    /// of that and costs accuracy; f32 takes twice as much.
    pub fn kv(mut self, dtype: KvDtype) -> EngineBuilder {
        self.settings.kv = dtype;
        self
    }

    /// How activations meet quantised weights; by default they are rounded to int8. In f32 the only
    /// error is that of f32 sums, and computing takes several times as long.
    pub fn activations(mut self, activations: Activations) -> EngineBuilder {
        self.settings.activations = activations;
        self
    }

    /// Computes with fewer bits per weight than the file has: the matrices of products are quantised
    /// to `format` when they are packed, those that have more bits per weight and rows of a multiple
    /// of 32 values. By default all weights are as stored. It costs accuracy, and whatever is
    /// measured is not of the same weights as the file's; [`Engine::requantized`] says what is
    /// changed and what not.
    pub fn requant(mut self, format: Requant) -> EngineBuilder {
        self.settings.requant = Some(format);
        self
    }

    /// What [`requant`](EngineBuilder::requant) will change; none where it is not asked for. Only
    /// the file's header is read.
    ///
    /// # Errors
    /// When the model cannot be read or is not supported.
    pub fn requantized(&self) -> Result<Option<Requantized>, Error> {
        let file = WeightFile::open(&self.settings.model)?;
        Ok(self.settings.model(&file)?.1)
    }

    /// Most prompt tokens in a chunk; by default 512, with an NPU as many as its largest graph
    /// holds (1024). Smaller chunks let other requests get their turn sooner.
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

    /// Adds a device; by default an engine has the CPU alone. All of them share the weights, one KV
    /// cache and one pool of buffers.
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

    /// Chooses by name who places ops on devices and cuts prompts ([`strategies`] lists the
    /// names); by default `auto` where there are several devices, and `cpu-only` or `gpu-only` on a
    /// single one.
    ///
    /// [`strategies`]: lapwing_plan::strategies
    pub fn strategy(mut self, name: impl Into<String>) -> EngineBuilder {
        self.settings.strategy = StrategyChoice::Named(name.into());
        self
    }

    /// Sets what strategies made by name leave open, such as the ratio of a cut or whether operands
    /// may be swapped; each takes what it has a use for. `in_flight` is overwritten by
    /// [`permits`](EngineBuilder::permits).
    ///
    /// ```no_run
    /// # use lapwing::Engine;
    /// # use lapwing::devices::DeviceSpec;
    /// use lapwing::plan::{OrderSwap, StrategyOptions};
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let builder = Engine::builder().model("model.gguf").strategy("row-cut");
    /// let engine = DeviceSpec::list("phone")?
    ///     .into_iter()
    ///     .fold(builder, |builder, device| builder.device(device))
    ///     .strategy_options(StrategyOptions {
    ///         order_swap: OrderSwap::Off,
    ///         ratio: "6:2:1".parse()?,
    ///         ..StrategyOptions::default()
    ///     })
    ///     .build_blocking()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn strategy_options(mut self, options: StrategyOptions) -> EngineBuilder {
        self.settings.options = options;
        self
    }

    /// As [`strategy`](EngineBuilder::strategy), with one of the caller's own.
    pub fn own_strategy(self, strategy: impl Strategy + 'static) -> EngineBuilder {
        self.shared_strategy(Arc::new(strategy))
    }

    /// As [`own_strategy`](EngineBuilder::own_strategy), with one that others have, too.
    pub fn shared_strategy(mut self, strategy: Arc<dyn Strategy>) -> EngineBuilder {
        self.settings.strategy = StrategyChoice::Own(strategy);
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

    /// Places ops on a device, whatever the strategy says: `PATTERN=DEVICE`, such as
    /// `layers.*.ffn=npu`; may be called several times, the last match counts.
    pub fn place(mut self, place: impl Into<String>) -> EngineBuilder {
        self.settings.places.push(place.into());
        self
    }

    /// Most chunks in flight; by default 2 for one device and 4 for several.
    pub fn permits(mut self, permits: usize) -> EngineBuilder {
        self.settings.permits = Some(permits);
        self
    }

    /// How the actors of a link wait for messages (S2-35); by default devices that hand work to
    /// each other sleep for the predicted time and then poll, and all others park.
    pub fn wait(mut self, link: WaitLink, mode: WaitMode) -> EngineBuilder {
        match link {
            WaitLink::Devices => self.settings.device_wait = Some(mode),
            WaitLink::Scheduler => self.settings.scheduler_wait = Some(mode),
        }
        self
    }

    /// Keeps weights that were packed for the CPU in a folder, one file for each model, and maps them
    /// from there on the next start: it is then quicker, and processes share the memory. By default
    /// nothing is kept. A file that is damaged, or of what the model was before, is not used but
    /// replaced; [`Engine::packed_weights`] says so.
    ///
    /// The weight file is known again by its size, the times of its last changes, its number in
    /// the file system, and checksums over its metadata and over blocks of its data; the kept file
    /// is checked as a whole on each start. Nothing may change it while it is in use: only those
    /// whom you trust may write to the folder.
    pub fn packed_cache(mut self, folder: impl Into<PathBuf>) -> EngineBuilder {
        self.settings.packed_cache = Some(folder.into());
        self
    }

    /// Most bytes of all files in the folder of [`packed_cache`](EngineBuilder::packed_cache), by
    /// default 16 GiB. Those used least recently are removed.
    pub fn packed_cache_max(mut self, bytes: u64) -> EngineBuilder {
        self.settings.packed_cache_max = Some(bytes);
        self
    }

    /// Opens the model and starts the actors. The work is done beside the caller's runtime.
    ///
    /// # Errors
    /// When the file is missing, broken or not supported, or a setting makes no sense.
    pub async fn build(self) -> Result<Engine, Error> {
        spawn_blocking("load", move || self.build_blocking()).await.map_err(Error::thread)?
    }

    /// As [`build`](EngineBuilder::build), on the calling thread.
    ///
    /// # Errors
    /// As [`build`](EngineBuilder::build).
    pub fn build_blocking(self) -> Result<Engine, Error> {
        let file = WeightFile::open(&self.settings.model)?;
        start::start(self.settings, &file)
    }
}
