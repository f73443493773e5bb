//! Settings of an engine, and the values they resolve to on this machine.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::drive::wait::{LinkMode, Waits};
use lapwing_actors::policy::{PolicyChoice, PolicyError, QueuePolicy};
use lapwing_kernels::cpu::{Activations, Isa};
use lapwing_kernels::kv::{KvDtype, KvLayout, KvSharing};
use lapwing_kernels::mask::AttentionRule;
use lapwing_kernels::model::{Model, ModelConfig};
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
use crate::error::Error;

mod threads;

pub(crate) use threads::{Threads, cores};

/// Largest default context. Beyond it, the KV cache of a large model could take more memory than
/// a laptop has.
const CONTEXT_DEFAULT_MAX: usize = 8192;

/// Default maximum of prompt rows in a chunk, unless a device has a better value.
const CHUNK_ROWS_DEFAULT: usize = 512;

/// Default number of requests that are computed at once.
pub const SEQUENCES_DEFAULT: usize = 16;

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
    pub(crate) profile: Option<Arc<Profile>>,
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
    /// Whether packed weights are locked in memory.
    pub(crate) lock_weights: bool,
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

/// Settings with every default resolved.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// The devices, with the threads of each.
    pub(crate) devices: Vec<(DeviceSpec, Threads)>,
    pub(crate) isa: Isa,
    pub(crate) activations: Activations,
    pub(crate) context: usize,
    pub(crate) pages: u32,
    pub(crate) layout: KvLayout,
    pub(crate) chunk_rows: usize,
    pub(crate) sequences_max: usize,
    pub(crate) requests_max: usize,
    pub(crate) permits: usize,
    pub(crate) token_gap: Option<Duration>,
    pub(crate) waits: Waits,
    /// Whether the model's rows see later ones, so that requests share no prefixes.
    pub(crate) is_encoder: bool,
}

/// The instruction set of that name, or the fastest available.
pub(crate) fn choose_isa(name: Option<&str>) -> Result<Isa, Error> {
    let Some(name) = name else { return Ok(Isa::best()) };
    let available = Isa::available();
    available.iter().copied().find(|isa| isa.name() == name).ok_or_else(|| {
        let names: Vec<_> = available.iter().map(|isa| isa.name()).collect();
        Error::unknown("instruction set", name, &format!("{} on this machine", names.join(", ")))
    })
}

impl Settings {
    /// The file's model, with the settings' masks, with shared keys and values, and with matrices
    /// requantised if they say so.
    pub(crate) fn model(&self, file: &WeightFile) -> Result<(Model, Option<Requantized>), Error> {
        let mut model = Model::from_weights(file)?;
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
        let found = || format!("'{}'", self.policy.name());
        self.policy.make().map_err(|error| match error {
            PolicyError::Unknown { .. } => {
                Error::config("policy", found(), &format!("one of {}", PolicyError::known_names()))
            }
            other => Error::config("policy", found(), &format!("valid: {other}")),
        })
    }

    pub(crate) fn choose(&self, model: &ModelConfig) -> Result<Chosen, Error> {
        let layout = KvLayout { dtype: self.kv, ..model.kv_layout() };
        let masked = self.attention.iter().filter_map(|rule| rule.mask.positions()).min();
        let masked = masked.unwrap_or(usize::MAX);
        let default_context = model.context.min(CONTEXT_DEFAULT_MAX).min(masked);
        let context =
            within("context", self.context.unwrap_or(default_context), 1..=model.context)?;
        if context > masked {
            let right = format!("at most {masked}, the positions in a block-sparse mask's blocks");
            return Err(Error::config("context", context, &right));
        }
        let cache_tokens = self.cache_tokens.unwrap_or(2 * context);
        let cache_tokens = within("cache_tokens", cache_tokens, 1..=u32::MAX as usize)?;
        let fits = layout
            .page_bytes()
            .checked_mul(layout.pages_for(cache_tokens))
            .is_some_and(|bytes| bytes <= isize::MAX as usize);
        if !fits {
            let (bytes, rows) = (layout.page_bytes(), layout.page_rows);
            let right = format!("small enough to address, at {bytes} bytes for {rows} tokens");
            return Err(Error::config("cache_tokens", cache_tokens, &right));
        }
        let sequences_max =
            within("sequences_max", self.sequences_max.unwrap_or(SEQUENCES_DEFAULT), 1..=4096)?;
        let requests_max = within("requests_max", self.requests_max.unwrap_or(1024), 1..=1 << 20)?;
        let devices = self.choose_devices()?;
        check_activations(self.activations, devices.iter().map(|(spec, _)| spec))?;
        let chunk_rows = chunk_rows_default(devices.iter().map(|(spec, _)| spec));
        let mut waits = Waits::for_devices(devices.len());
        waits.device_links = self.device_wait.map_or(waits.device_links, LinkMode::Fixed);
        waits.scheduler_link = self.scheduler_wait.map_or(waits.scheduler_link, LinkMode::Fixed);
        let permits_default = permits_default(devices.len());
        Ok(Chosen {
            devices,
            isa: choose_isa(self.isa.as_deref())?,
            activations: self.activations,
            context,
            pages: layout.pages_for(cache_tokens) as u32,
            layout,
            chunk_rows: within("chunk_rows", self.chunk_rows.unwrap_or(chunk_rows), 1..=1 << 20)?,
            sequences_max,
            requests_max,
            permits: within("permits", self.permits.unwrap_or(permits_default), 1..=256)?,
            token_gap: self.token_gap,
            waits,
            is_encoder: model.arch.is_encoder(),
        })
    }
}

/// Checks that every device can compute with activations of this precision.
fn check_activations<'a>(
    activations: Activations,
    mut devices: impl Iterator<Item = &'a DeviceSpec>,
) -> Result<(), Error> {
    if !activations.is_by_row() {
        return Ok(());
    }
    match devices.find_map(|spec| Some((&spec.name, spec.refuses_rows()?))) {
        None => Ok(()),
        Some((device, reason)) => {
            let expected = format!("int8 or f32 with the device '{device}': {reason}");
            Err(Error::config("activations", activations.name(), &expected))
        }
    }
}

/// The rows of an NPU's largest graph, if there is an NPU: smaller chunks would cut a prompt
/// before a strategy can divide it at a standard graph size.
pub fn chunk_rows_default<'a>(devices: impl Iterator<Item = &'a DeviceSpec>) -> usize {
    let sizes = |spec: &'a DeviceSpec| spec.graphs.sizes.iter().copied().max();
    devices.filter(|spec| spec.is_static()).filter_map(sizes).max().unwrap_or(CHUNK_ROWS_DEFAULT)
}

/// Default number of chunks in flight: on each device one computes while the next one waits.
pub fn permits_default(devices: usize) -> usize {
    if devices > 1 { 4 } else { 2 }
}

fn within(
    what: &'static str,
    value: usize,
    range: std::ops::RangeInclusive<usize>,
) -> Result<usize, Error> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(Error::config(what, value, &format!("between {} and {}", range.start(), range.end())))
}
