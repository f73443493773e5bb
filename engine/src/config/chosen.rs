//! The values that settings resolve to on this machine.

use std::time::Duration;

use lapwing_actors::drive::wait::{LinkMode, Waits};
use lapwing_kernels::cpu::{Activations, Isa};
use lapwing_kernels::kv::{KvLayout, KvSize};
use lapwing_kernels::model::ModelConfig;

use super::{Settings, Threads};
use crate::devices::DeviceSpec;
use crate::error::Error;

/// Largest default context. Beyond it, the KV cache of a large model could take more memory than
/// a laptop has.
pub(super) const CONTEXT_DEFAULT_MAX: usize = 8192;

/// Default maximum of prompt rows in a chunk, unless a device has a better value.
const CHUNK_ROWS_DEFAULT: usize = 512;

/// Default number of requests that are computed at once.
pub const SEQUENCES_DEFAULT: usize = 16;

/// Settings with every default resolved.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// The devices, with the threads of each.
    pub(crate) devices: Vec<(DeviceSpec, Threads)>,
    pub(crate) isa: Isa,
    pub(crate) activations: Activations,
    pub(crate) context: usize,
    pub(crate) pages: u32,
    /// Places of states: one for each sequence, and those that are kept.
    pub(crate) states: u32,
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
fn choose_isa(name: Option<&str>) -> Result<Isa, Error> {
    let Some(name) = name else { return Ok(Isa::best()) };
    let available = Isa::available();
    available.iter().copied().find(|isa| isa.name() == name).ok_or_else(|| {
        let names: Vec<_> = available.iter().map(|isa| isa.name()).collect();
        Error::unknown("instruction set", name, &format!("{} on this machine", names.join(", ")))
    })
}

impl Chosen {
    /// Size of the cache.
    pub(crate) fn kv_size(&self) -> KvSize {
        KvSize { pages: self.pages, states: self.states }
    }
}

/// States that the prefix cache keeps: as many as take a tenth of the memory of all pages, at least 8, at most one for each page.
fn kept_states(layout: &KvLayout, pages: u32) -> usize {
    let pages = pages as usize;
    let tenth = layout.page_bytes().saturating_mul(pages) / 10;
    (tenth / layout.state_bytes().max(1)).max(8).min(pages)
}

impl Settings {
    /// These settings with defaults for a model.
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
        let pages = layout.pages_for(cache_tokens) as u32;
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
            pages,
            states: (sequences_max + kept_states(&layout, pages)) as u32,
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

/// Default number of chunks in flight: on each device one computes while the next one waits. Of three devices and more, chunks of a prompt
/// wait for each other besides.
pub fn permits_default(devices: usize) -> usize {
    (4 * devices.saturating_sub(1)).clamp(2, 8)
}

pub(super) fn within(
    what: &'static str,
    value: usize,
    range: std::ops::RangeInclusive<usize>,
) -> Result<usize, Error> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(Error::config(what, value, &format!("between {} and {}", range.start(), range.end())))
}
