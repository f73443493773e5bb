//! The content of a report, in the form of its file, which docs/json.md defines.

use lapwing_engine::profile::Profile;
use serde::{Deserialize, Serialize};

use super::machine::Machine;
use crate::commands::devices::Drivers;

/// Version of the form.
pub(super) const VERSION: u64 = 1;

/// A report.
#[derive(Serialize, Deserialize)]
pub(super) struct Report {
    /// Version of the form; only [`VERSION`] is read.
    pub(super) lapwing_report: u64,
    /// Version of the program.
    pub(super) program: String,
    pub(super) machine: Machine,
    pub(super) drivers: Drivers,
    pub(super) model: Model,
    /// The devices, each with what it generated.
    pub(super) devices: Vec<DeviceCheck>,
    /// Measured times of ops on the devices that work.
    pub(super) profile: Option<Profile>,
    /// How far predictions from the profile can be trusted.
    pub(super) trust: Option<Trust>,
    /// Why there is no profile.
    pub(super) profile_failed: Option<String>,
    /// Strategies on the devices that work.
    pub(super) strategies: Option<Strategies>,
    /// Why there are no strategies.
    pub(super) strategies_failed: Option<String>,
    /// Time that all steps took.
    pub(super) seconds: f64,
}

/// The model.
#[derive(Serialize, Deserialize)]
pub(super) struct Model {
    /// Name of its file, without the folder.
    pub(super) file: String,
    pub(super) bytes: u64,
}

/// What a device generated after a fixed prompt, beside the CPU.
#[derive(Serialize, Deserialize)]
pub(super) struct DeviceCheck {
    pub(super) device: String,
    /// The device as in `--device`.
    pub(super) spec: String,
    /// Whether CPU threads compute in its place.
    pub(super) emulated: bool,
    /// The device that computed what this one cannot, as in `--device`.
    pub(super) beside: Option<String>,
    /// Ids of the answer.
    pub(super) ids: Option<Vec<u32>>,
    /// Whether they are those of the CPU.
    pub(super) equal: Option<bool>,
    /// Position of the first id that is not.
    pub(super) first_difference: Option<usize>,
    pub(super) prefill_tokens_per_second: Option<f64>,
    pub(super) decode_tokens_per_second: Option<f64>,
    /// Why there are no ids.
    pub(super) failed: Option<String>,
}

/// How far predictions can be trusted.
#[derive(Serialize, Deserialize)]
pub(super) struct Trust {
    /// `good`, `doubtful` or `unusable`.
    pub(super) trust: String,
    pub(super) why: Option<String>,
}

/// Strategies on the devices that work.
#[derive(Serialize, Deserialize)]
pub(super) struct Strategies {
    /// The devices, as in `--device`.
    pub(super) devices: Vec<String>,
    pub(super) prompt_tokens: usize,
    pub(super) generated_tokens: usize,
    /// Source of the predicted times.
    pub(super) source: String,
    /// The strategy that `auto` chooses, by prediction.
    pub(super) chosen: String,
    /// The strategies, the fastest by prediction first.
    pub(super) runs: Vec<StrategyRun>,
}

/// A strategy.
#[derive(Serialize, Deserialize)]
pub(super) struct StrategyRun {
    pub(super) strategy: String,
    pub(super) predicted_ms: Option<f64>,
    /// What was measured in one run.
    pub(super) measured: Option<Measured>,
    /// Whether it generated the ids of `cpu-only`.
    pub(super) equal: Option<bool>,
    /// Why it is impossible, or was not measured.
    pub(super) failed: Option<String>,
}

/// What was measured of a strategy, with the names of `lapwing bench`.
#[derive(Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) chunks: usize,
    pub(super) ttft_ms: f64,
    pub(super) tpot_ms: Option<f64>,
    pub(super) makespan_ms: f64,
    pub(super) overlap: Option<f64>,
    pub(super) late_ms: f64,
    pub(super) ids: Vec<u32>,
}
