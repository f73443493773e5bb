//! Settings of an engine, and what they become on this machine.

use std::path::PathBuf;
use std::thread::available_parallelism;

use lapwing_kernels::cpu::{Isa, THREADS_MAX};
use lapwing_kernels::kv::KvLayout;
use lapwing_kernels::model::ModelConfig;
use lapwing_traces::Recorder;

use crate::error::Error;

/// Largest context that is set without being asked for: beyond it the KV cache of a large
/// model could take more memory than a laptop has.
const CONTEXT_DEFAULT_MAX: usize = 8192;

/// Settings as a caller gives them; `None` leaves the choice to the engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) model: PathBuf,
    pub(crate) threads: Option<usize>,
    pub(crate) isa: Option<String>,
    pub(crate) context: Option<usize>,
    pub(crate) cache_tokens: Option<usize>,
    pub(crate) chunk_rows: Option<usize>,
    pub(crate) sequences_max: Option<usize>,
    pub(crate) requests_max: Option<usize>,
    pub(crate) recorder: Option<Recorder>,
}

/// Settings as the engine uses them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    pub(crate) threads: usize,
    pub(crate) isa: Isa,
    pub(crate) context: usize,
    pub(crate) pages: u32,
    pub(crate) layout: KvLayout,
    pub(crate) chunk_rows: usize,
    pub(crate) sequences_max: usize,
    pub(crate) requests_max: usize,
    pub(crate) permits: usize,
}

/// Threads that the machine can run at once.
pub(crate) fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// The instruction set of that name, or the best one.
pub(crate) fn choose_isa(name: Option<&str>) -> Result<Isa, Error> {
    let Some(name) = name else { return Ok(Isa::best()) };
    let available = Isa::available();
    available.iter().copied().find(|isa| isa.name() == name).ok_or_else(|| {
        let names: Vec<_> = available.iter().map(|isa| isa.name()).collect();
        Error::config("isa", format!("'{name}'"), &format!("one of {} here", names.join(", ")))
    })
}

impl Settings {
    pub(crate) fn choose(&self, model: &ModelConfig) -> Result<Chosen, Error> {
        let layout = model.kv_layout();
        let default_context = model.context.min(CONTEXT_DEFAULT_MAX);
        let context =
            within("context", self.context.unwrap_or(default_context), 1..=model.context)?;
        let cache_tokens = self.cache_tokens.unwrap_or(2 * context);
        let cache_tokens = within("cache_tokens", cache_tokens, 1..=u32::MAX as usize)?;
        let fits = layout
            .page_bytes()
            .checked_mul(layout.pages_for(cache_tokens))
            .is_some_and(|bytes| bytes <= isize::MAX as usize);
        if !fits {
            return Err(Error::config("cache_tokens", cache_tokens, "small enough to address"));
        }
        let sequences_max = within("sequences_max", self.sequences_max.unwrap_or(16), 1..=4096)?;
        let requests_max = within("requests_max", self.requests_max.unwrap_or(1024), 1..=1 << 20)?;
        Ok(Chosen {
            threads: within("threads", self.threads.unwrap_or_else(cores), 1..=THREADS_MAX)?,
            isa: choose_isa(self.isa.as_deref())?,
            context,
            pages: layout.pages_for(cache_tokens) as u32,
            layout,
            chunk_rows: within("chunk_rows", self.chunk_rows.unwrap_or(512), 1..=1 << 20)?,
            sequences_max,
            requests_max,
            // One chunk computes while the next one waits beside the worker.
            permits: 2,
        })
    }
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
