//! The results of `bench`, as printed and as saved.

use lapwing_engine::KvDtype;
use lapwing_engine::profile::Machine;
use lapwing_kernels::kv::UnknownKvDtype;
use lapwing_traces::Spread;
use serde::{Deserialize, Serialize};

use super::drafts::Drafted;
use crate::cli::attention::AttentionChanges;
use crate::cli::requant::RequantReport;

/// Statistics of repeated measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Figures {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// All values, in the order of measurement.
    pub(super) all: Vec<f64>,
}

impl Figures {
    /// From at least one value; all must be finite and above 0.
    pub(super) fn of(all: Vec<f64>) -> Option<Figures> {
        let sound = |value: &f64| value.is_finite() && *value > 0.0;
        let Spread { median, min, max } = Spread::of(&all).filter(|_| all.iter().all(sound))?;
        Some(Figures { median, min, max, all })
    }
}

/// One test of one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) test: String,
    pub(super) tokens: usize,
    /// Tokens of context before them.
    pub(super) depth: usize,
    pub(super) tokens_per_second: Figures,
    /// Tokens per second of reading without computing, measured with each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reading: Option<Figures>,
    /// What drafts did; the speed above is with drafts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) draft: Option<Drafted>,
}

/// All tests of one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct EngineRuns {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) results: Vec<Measured>,
    /// Maximum resident memory of each process.
    pub(super) peak_bytes: Option<Figures>,
    /// Time of processes that load the model, compute one prompt token and end.
    pub(super) one_token_ms: Option<Figures>,
}

/// One run of `bench`, as saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Version of the format; only [`Record::VERSION`] can be read.
    pub(super) version: u32,
    /// Date and time in UTC.
    pub(super) date: String,
    pub(super) machine: Machine,
    pub(super) model: String,
    pub(super) model_bytes: u64,
    pub(super) threads: usize,
    /// Type of this engine's KV cache.
    #[serde(default)]
    pub(super) kv: Kv,
    /// Requantised format of this engine's weights; `None` if they are used as stored, or for runs that
    /// do not state it.
    #[serde(default)]
    pub(super) requant: Option<RequantReport>,
    /// What this engine changes of attention; nothing for runs that do not state it.
    #[serde(flatten)]
    pub(super) attention: AttentionChanges,
    /// Other settings of this engine: devices, strategy, rows of a chunk, warm-up, and whether each run
    /// had a process of its own. Empty for runs that do not state them.
    #[serde(default)]
    pub(super) settings: String,
    pub(super) engines: Vec<EngineRuns>,
}

/// A [`KvDtype`] by name; f16 for runs that do not state it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub(super) struct Kv(pub(super) KvDtype);

impl From<Kv> for &'static str {
    fn from(Kv(dtype): Kv) -> &'static str {
        dtype.name()
    }
}

impl TryFrom<String> for Kv {
    type Error = UnknownKvDtype;

    fn try_from(name: String) -> Result<Kv, UnknownKvDtype> {
        name.parse().map(Kv)
    }
}

impl Record {
    pub(super) const VERSION: u32 = 1;
}

/// A ratio of two engines or two runs, in one respect.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Ratio {
    /// The other engine.
    pub(super) engine: String,
    /// A test, `one_token_ms` or `peak_bytes`.
    pub(super) what: String,
    /// Ours / theirs, pair by pair.
    pub(super) of_pairs: Figures,
    /// Our median / their median.
    pub(super) of_medians: f64,
}
