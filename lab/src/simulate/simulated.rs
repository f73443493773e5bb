//! The results of a simulated run.

use serde::Serialize;

/// Results of a simulated run. Times are virtual.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Simulated {
    /// From submission to the first token, in ms.
    pub prefill_ms: f64,
    /// Prompt tokens divided by that time.
    pub prefill_tokens_per_second: f64,
    /// From the first token to the last, in ms; `None` without decode steps.
    pub decode_ms: Option<f64>,
    /// Decoded rows divided by that time; all rows of a step count as accepted.
    pub decode_tokens_per_second: Option<f64>,
    /// From submission to the end of all work, in ms.
    pub makespan_ms: f64,
    /// Work of the busiest processor: a lower bound of the makespan for this division of work, in ms.
    pub lower_bound_ms: f64,
    /// Part of it spent preparing static graphs, in ms.
    pub preparation_ms: f64,
    /// Total energy, in J; `None` if the power of the processors is unknown.
    pub energy_j: Option<f64>,
    /// Mean power, in W; `None` as for `energy_j`.
    pub power_w: Option<f64>,
    /// Energy of prefill, in J; `None` as for `energy_j`.
    pub prefill_j: Option<f64>,
    /// Mean power of prefill, in W; `None` as for `energy_j`.
    pub prefill_w: Option<f64>,
    /// Energy of decode, in J.
    pub decode_j: Option<f64>,
    /// Mean power of decode, in W.
    pub decode_w: Option<f64>,
    /// Bandwidth of decode: bytes moved divided by its time, in GB/s.
    pub decode_gb_per_s: Option<f64>,
    /// Share of the processors' busy time during which another processor was busy, too.
    pub overlap: f64,
    /// Number of synchronisations between processors.
    pub syncs: usize,
    /// Frames per second of the game, if there is one.
    pub frames_per_second: Option<f64>,
    /// The devices, in order of their names.
    pub devices: Vec<DeviceUse>,
}

/// What a device did in a simulated run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeviceUse {
    /// Name of the device.
    pub name: String,
    /// Time computing, in ms.
    pub busy_ms: f64,
    /// Number of runs; 0 if the strategy gave it nothing.
    pub runs: usize,
}
