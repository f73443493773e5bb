//! A simulated run in numbers.

use serde::Serialize;

/// A simulated run in numbers. Times are virtual.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulated {
    /// From the submission to the first token, in ms.
    pub prefill_ms: f64,
    /// Prompt tokens by that time.
    pub prefill_tokens_per_second: f64,
    /// From the first token to the last, in ms; none without steps of generation.
    pub decode_ms: Option<f64>,
    /// Rows of generation by that time; with several in a step, as if all were accepted.
    pub decode_tokens_per_second: Option<f64>,
    /// Until everything is over, in ms.
    pub makespan_ms: f64,
    /// The busiest processor's work: no order of the same work ends earlier. In ms.
    pub lower_bound_ms: f64,
    /// Preparation of static graphs within it, in ms.
    pub preparation_ms: f64,
    /// Energy of all of it, in J.
    pub energy_j: f64,
    /// Mean power, in W.
    pub power_w: f64,
    /// Energy of the prompt, in J.
    pub prefill_j: f64,
    /// Mean power during the prompt, in W.
    pub prefill_w: f64,
    /// Energy of generation, in J.
    pub decode_j: Option<f64>,
    /// Mean power during generation, in W.
    pub decode_w: Option<f64>,
    /// Bytes that generation moves, by its time, in GB/s.
    pub decode_gb_per_s: Option<f64>,
    /// Share of the processors' busy time that ran beside other busy time.
    pub overlap: f64,
    /// Synchronisations between processors.
    pub syncs: usize,
    /// Frames per second of the game beside it, if there is one.
    pub frames_per_second: Option<f64>,
}
