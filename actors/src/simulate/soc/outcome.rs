//! The outcome of a simulated run.

use std::time::Duration;

use lapwing_kernels::device::DeviceKind;
use lapwing_traces::Recording;
use serde::Serialize;

use super::SocSimulation;
use super::devices::{Power, Unit};
use crate::drive::simulated::DeviceUsage;
use crate::simulate::virtual_engine::{Moment, Seen};
use lapwing_plan::soc::Soc;

/// The outcome of a simulated run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SocOutcome {
    /// From the request to its first token, in ms.
    pub prefill_ms: f64,
    /// Rows of the prompt per second until the first token.
    pub prefill_tokens_per_second: f64,
    /// Time per decode step, in ms; `None` without decode steps.
    pub decode_ms: Option<f64>,
    /// Decode rows per second; with several rows per step, all count as accepted.
    pub decode_tokens_per_second: Option<f64>,
    /// Energy until the last token, in J; `None` if the power of a device is unknown.
    pub energy_j: Option<f64>,
    /// Mean power until the last token, in W; `None` as for `energy_j`.
    pub power_w: Option<f64>,
    /// (Σ busy − busy of any) / Σ busy, over the processors: 0 without overlap.
    pub overlap: f64,
    /// Lower bound of the time until the last token for any order of the same work, in ms: the maximum
    /// of each processor's work and of the longest dependency chain.
    pub lower_bound_ms: f64,
    /// Time of graph preparation during runs, in ms.
    pub preparation_ms: f64,
    /// From the request to its last token, in ms.
    pub makespan_ms: f64,
    /// The phase until the first token.
    pub prefill: SocPhase,
    /// The phase after the first token.
    pub decode: Option<SocPhase>,
    /// Sampled token ids, one per step; all 0 in a run without values.
    pub tokens: Vec<u32>,
    /// The recording, if the options request one.
    #[serde(skip)]
    pub recording: Option<Recording>,
}

/// Figures of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SocPhase {
    /// Length, in ms.
    pub ms: f64,
    /// Energy, in J; `None` if the power of a device is unknown.
    pub energy_j: Option<f64>,
    /// Mean power, in W; `None` as for `energy_j`.
    pub power_w: Option<f64>,
    /// Overlap, as of the whole run.
    pub overlap: f64,
    /// Synchronisations between processors.
    pub hand_overs: usize,
    /// Stages whose parts were merged.
    pub merges: usize,
    /// Time of the merges, in ms.
    pub copy_ms: f64,
    /// Bytes moved, in GB.
    pub gigabytes: f64,
    /// Frames per second; 0 without a renderer.
    pub frames_per_second: f64,
    /// Figures of each processor.
    pub units: Vec<SocUnit>,
}

/// Figures of one processor in a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SocUnit {
    /// Name.
    pub name: String,
    /// Time computing, in ms.
    pub busy_ms: f64,
    /// Time computing while another processor computes, in ms.
    pub co_run_ms: f64,
    /// Time of submissions and synchronisations, in ms.
    pub waiting_ms: f64,
    /// Polling time, as part of `waiting_ms`, in ms.
    pub spinning_ms: f64,
    /// Time stalled by frames, in ms.
    pub held_ms: f64,
    /// Time merging parts, in ms.
    pub merging_ms: f64,
    /// Idle time, in ms.
    pub idle_ms: f64,
    /// Number of runs.
    pub runs: usize,
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Computes the figures of a run from the caller's observations.
pub(super) fn outcome(
    run: &SocSimulation,
    seen: &Seen,
    recording: Option<Recording>,
) -> SocOutcome {
    let Seen { begin, first, last, .. } = seen;
    let steps = (seen.later / run.options.verify) as f64;
    let phase = |from: &Moment, to: &Moment| phase(&run.soc, &run.units, from, to);
    let whole = phase(begin, last);
    let decode_ms = (steps > 0.0).then(|| ms(last.at.since(first.at)) / steps);
    let rows = run.options.verify as f64;
    let prompt = run.options.prompt as f64;
    let prefill_ms = ms(first.at.since(begin.at));
    SocOutcome {
        prefill_ms,
        prefill_tokens_per_second: per_second(prompt, prefill_ms),
        decode_ms,
        decode_tokens_per_second: decode_ms.map(|ms| per_second(rows, ms)),
        energy_j: whole.energy_j,
        power_w: whole.power_w,
        overlap: whole.overlap,
        lower_bound_ms: ms(seen.lower_bound()),
        preparation_ms: last.usage.preparing_ms - begin.usage.preparing_ms,
        makespan_ms: ms(last.at.since(begin.at)),
        prefill: phase(begin, first),
        decode: (steps > 0.0).then(|| phase(first, last)),
        tokens: seen.tokens.clone(),
        recording,
    }
}

fn per_second(count: f64, ms: f64) -> f64 {
    if ms > 0.0 { count / ms * 1e3 } else { 0.0 }
}

/// Figures between two moments.
fn phase(soc: &Soc, devices: &[Unit], from: &Moment, to: &Moment) -> SocPhase {
    let (before, after) = (&from.usage, &to.usage);
    let unit = |at: &usize| {
        let zero = DeviceUsage::default();
        let before = before.devices.get(*at).unwrap_or(&zero);
        let after = after.devices.get(*at).unwrap_or(&zero);
        SocUnit {
            name: devices[*at].name.clone(),
            busy_ms: ms(after.busy.since(before.busy)),
            co_run_ms: ms(after.co_run.since(before.co_run)),
            waiting_ms: ms(after.waiting.since(before.waiting)),
            spinning_ms: ms(after.spinning.since(before.spinning)),
            held_ms: ms(after.held.since(before.held)),
            merging_ms: ms(after.merging.since(before.merging)),
            idle_ms: ms(after.idle.since(before.idle)),
            runs: after.runs - before.runs,
        }
    };
    // In order of their names, independent of the devices' order.
    let mut order: Vec<usize> = (0..devices.len()).collect();
    order.sort_by_key(|at| &devices[*at].name);
    let units: Vec<SocUnit> = order.iter().map(unit).collect();
    let length = ms(to.at.since(from.at));
    let gigabytes = (after.bytes - before.bytes) / 1e9;
    let busy: f64 = units.iter().map(|unit| unit.busy_ms).sum();
    let any = ms(after.any.since(before.any));
    let drawn: Option<f64> =
        order.iter().zip(&units).map(|(at, unit)| drawn(soc, devices[*at].power, unit)).sum();
    // W/(GB/s) · GB = J.
    let shared = soc.at("power.base") * length / 1e3 + soc.at("power.dram") * gigabytes;
    let energy_j = drawn.map(|millijoules| millijoules / 1e3 + shared);
    let power_w = |joules: f64| if length > 0.0 { joules / length * 1e3 } else { 0.0 };
    SocPhase {
        ms: length,
        energy_j,
        power_w: energy_j.map(power_w),
        overlap: if busy > 0.0 { (busy - any) / busy } else { 0.0 },
        hand_overs: after.hand_overs - before.hand_overs,
        merges: after.merges - before.merges,
        copy_ms: ms(after.copying.since(before.copying)),
        gigabytes,
        frames_per_second: per_second((after.frames - before.frames) as f64, length),
        units,
    }
}

/// Energy that a device draws in a phase, in mJ; `None` if its power is unknown. The energy of a phase is the integral over
/// time of P(t) = P_0 + u_n·P_n + u_g·P_g·φ(co-run) + P_dram·(GB/s) + spin·P_little.
fn drawn(soc: &Soc, power: Power, unit: &SocUnit) -> Option<f64> {
    let (alone, beside) = (unit.busy_ms - unit.co_run_ms, unit.co_run_ms);
    let computing = match power {
        Power::Of(DeviceKind::Gpu) => {
            soc.at("power.gpu") * (alone + beside * soc.at("power.co_run"))
        }
        Power::Of(DeviceKind::Npu) => soc.at("power.npu") * unit.busy_ms,
        Power::Of(_) => soc.at("power.cpu") * unit.busy_ms,
        Power::Own(watts) => watts? * unit.busy_ms,
    };
    Some(computing + soc.at("power.spin") * unit.spinning_ms)
}
