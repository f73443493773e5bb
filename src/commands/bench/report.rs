//! What was measured, as it is printed and as it is kept.

use lapwing::KvDtype;
use lapwing::profile::Machine;
use lapwing_kernels::kv::UnknownKvDtype;
use lapwing_traces::Spread;
use serde::{Deserialize, Serialize};

use crate::cli::requant::RequantReport;

/// Repeated measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Figures {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// In the order of measurement.
    pub(super) all: Vec<f64>,
}

impl Figures {
    /// Of at least one value that is finite and above 0; all must be.
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
    /// Tokens per second that reading alone allows, measured with each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reading: Option<Figures>,
}

/// All tests of one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct EngineRuns {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) results: Vec<Measured>,
    /// Largest resident memory of each process.
    pub(super) peak_bytes: Option<Figures>,
    /// Time of processes that load the model, compute one prompt token and end.
    pub(super) one_token_ms: Option<Figures>,
}

/// One run of `bench`, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Version of this form; [`Record::VERSION`] is the one that is read.
    pub(super) version: u32,
    /// When it was made, in UTC.
    pub(super) date: String,
    pub(super) machine: Machine,
    pub(super) model: String,
    pub(super) model_bytes: u64,
    pub(super) threads: usize,
    /// How this engine kept keys and values.
    #[serde(default)]
    pub(super) kv: Kv,
    /// What this engine computed with in fewer bits than the file has; none where it was not told to,
    /// or a run does not say.
    #[serde(default)]
    pub(super) requant: Option<RequantReport>,
    /// What else this engine was told: devices, strategy, rows of a chunk, warm-up, and whether each
    /// run had a process of its own. Empty where a run does not say.
    #[serde(default)]
    pub(super) settings: String,
    pub(super) engines: Vec<EngineRuns>,
}

/// A [`KvDtype`] by its name; f16 where a run does not say.
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

/// Two engines, or two runs, compared in one respect.
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
