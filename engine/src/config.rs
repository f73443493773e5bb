//! Settings of an engine.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::policy::{PolicyChoice, QueuePolicy};
use lapwing_actors::scheduler::Reserve;
use lapwing_kernels::cpu::{Activations, PackedMemory};
use lapwing_kernels::kv::{KvDtype, KvSharing};
use lapwing_kernels::mask::AttentionRule;
use lapwing_kernels::model::{Model, ModelPart};
use lapwing_kernels::npu::ActivationRanges;
use lapwing_kernels::requant::{Requant, Requantized};
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::plans::Plans;
use lapwing_plan::profile::Profile;
use lapwing_plan::strategy::{Strategies, Strategy, StrategyOptions};
use lapwing_traces::Recorder;
use lapwing_traces::event::WaitMode;

use crate::devices::DeviceSpec;
use crate::draft::DraftChoice;
use crate::drivers::Lister;
use crate::engine::own_cost::OwnCost;
use crate::error::Error;

mod chosen;
mod threads;

pub(crate) use chosen::Chosen;
use chosen::{CONTEXT_DEFAULT_MAX, within};
pub use chosen::{SEQUENCES_DEFAULT, chunk_rows_default, permits_default};
pub(crate) use threads::{Threads, cores};

/// Threads that tokenise prompts: two, so a short prompt can overtake a long one.
pub(crate) const PROMPT_THREADS: usize = 2;

/// Assumed time from the end of work on one device until another starts on its result, used where no
/// profile exists. Predictions name it as an assumption.
pub const SYNC_TIME: Duration = Duration::from_micros(20);

/// Assumed rate of a copy within memory, in bytes per second, used where no profile exists.
pub const COPY_RATE: f64 = 5e9;

/// Settings as the caller gives them; the engine chooses a value for each `None`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) model: PathBuf,
    /// Takes the place of `model`.
    #[cfg(feature = "fetch")]
    pub(crate) model_name: Option<String>,
    /// Set when a fetch of the named model is to stop.
    #[cfg(feature = "fetch")]
    pub(crate) fetch_stop: Arc<std::sync::atomic::AtomicBool>,
    pub(crate) threads: Option<usize>,
    pub(crate) cores: Option<Vec<usize>>,
    pub(crate) isa: Option<String>,
    pub(crate) context: Option<usize>,
    pub(crate) cache_tokens: Option<usize>,
    pub(crate) kv: KvDtype,
    pub(crate) activations: Activations,
    pub(crate) requant: Option<Requant>,
    pub(crate) attention: Vec<AttentionRule>,
    pub(crate) share_kv: Option<KvSharing>,
    pub(crate) chunk_rows: Option<usize>,
    pub(crate) sequences_max: Option<usize>,
    pub(crate) requests_max: Option<usize>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) devices: Vec<DeviceSpec>,
    /// Lists the drivers of the devices before they are opened.
    pub(crate) lister: Option<Lister>,
    pub(crate) strategy: StrategyChoice,
    pub(crate) strategies: Strategies,
    pub(crate) options: StrategyOptions,
    pub(crate) policy: PolicyChoice,
    /// Whether requests compute their common first rows each for itself.
    pub(crate) no_prefix_cache: bool,
    /// Folder that keeps the prefix cache between runs.
    pub(crate) kept_prefixes: Option<PathBuf>,
    pub(crate) draft: DraftChoice,
    pub(crate) places: Vec<String>,
    pub(crate) permits: Option<usize>,
    pub(crate) token_gap: Option<Duration>,
    pub(crate) reserve: Reserve,
    pub(crate) profile: Option<Arc<Profile>>,
    /// Makes the cost model of the caller's own.
    pub(crate) cost: Option<OwnCost>,
    /// Routes that were solved ahead.
    pub(crate) plans: Option<Arc<Plans>>,
    /// Whether requests wait for graphs that are not ready.
    pub(crate) wait_for_graphs: bool,
    /// Whether native devices are timed although no strategy has to choose between devices.
    pub(crate) timed: bool,
    /// Ranges of activations, in place of stored ones.
    pub(crate) ranges: Option<Arc<ActivationRanges>>,
    pub(crate) device_wait: Option<WaitMode>,
    pub(crate) scheduler_wait: Option<WaitMode>,
    pub(crate) packed_cache: Option<PathBuf>,
    pub(crate) packed_cache_max: Option<u64>,
    /// Where cached packed weights are while they are in use.
    pub(crate) packed_memory: Option<PackedMemory>,
    /// Whether packed weights are locked in memory.
    pub(crate) lock_weights: bool,
    /// Whether the model has to answer conversations.
    pub(crate) require_chat: bool,
}

/// A group of actors that wait for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitLink {
    /// The workers of the devices, which wait for each other and for the scheduler.
    Devices,
    /// The scheduler, which waits for callers and for chunks to end.
    Scheduler,
}

impl WaitLink {
    /// Both links.
    pub const ALL: [WaitLink; 2] = [WaitLink::Devices, WaitLink::Scheduler];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            WaitLink::Devices => "devices",
            WaitLink::Scheduler => "scheduler",
        }
    }
}

/// The strategy of an engine.
#[derive(Clone, Default)]
pub(crate) enum StrategyChoice {
    /// The default for its devices.
    #[default]
    Suitable,
    /// A strategy of the settings' `strategies`, by name.
    Named(String),
    /// A strategy of the caller's own.
    Own(Arc<dyn Strategy>),
}

impl fmt::Debug for StrategyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StrategyChoice::Suitable => f.write_str("Suitable"),
            StrategyChoice::Named(name) => f.debug_tuple("Named").field(name).finish(),
            StrategyChoice::Own(own) => f.debug_tuple("Own").field(&own.name()).finish(),
        }
    }
}

impl Settings {
    /// The file's model, with the settings' masks, with shared keys and values, and with matrices
    /// requantised if they say so.
    pub(crate) fn model(&self, file: &WeightFile) -> Result<(Model, Option<Requantized>), Error> {
        let part = match self.draft.is_predictor() {
            true => ModelPart::WithRows,
            false => ModelPart::Whole,
        };
        self.changed(self.part(file, part)?)
    }

    /// A part of the model's file, unchanged.
    pub(crate) fn part(&self, file: &WeightFile, part: ModelPart) -> Result<Model, Error> {
        let context = self.context.unwrap_or(CONTEXT_DEFAULT_MAX);
        Ok(Model::part(file, Some(context), part)?)
    }

    /// As [`model`](Settings::model), of a model that was read.
    pub(crate) fn changed(&self, mut model: Model) -> Result<(Model, Option<Requantized>), Error> {
        model.graph.set_attention(&self.attention).map_err(|error| {
            let rules: Vec<String> = self.attention.iter().map(ToString::to_string).collect();
            Error::config("attention", rules.join(" "), &format!("valid for the model: {error}"))
        })?;
        if let Some(sharing) = &self.share_kv {
            model.share_kv(sharing).map_err(|error| {
                Error::config("share_kv", sharing, &format!("valid for the model: {error}"))
            })?;
        }
        let requantized = self.requant.map(|format| model.graph.requantize(format));
        Ok((model, requantized))
    }

    /// The queue policy.
    pub(crate) fn queue_policy(&self) -> Result<Box<dyn QueuePolicy>, Error> {
        self.policy.make().map_err(|error| Error::choice("policy", self.policy.name(), &error))
    }
}
