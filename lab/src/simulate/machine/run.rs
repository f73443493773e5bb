//! Runs a machine in virtual time.

use std::time::Duration;

use lapwing_actors::drive::simulated::DeviceUsage;
use lapwing_actors::simulate::SocRunError;
use lapwing_actors::simulate::traffic::Traffic;
use lapwing_actors::simulate::virtual_engine::{Caller, Seen};
use lapwing_kernels::device::DeviceInfo;
use lapwing_traces::{Recording, Scope};

use super::Machine;
use super::on::{Devices, On};
use crate::simulate::error::SimulateError;
use crate::simulate::interference::Interference;
use crate::simulate::scenario::Scenario;
use crate::simulate::simulated::{DeviceUse, Simulated};
use crate::simulate::world::Replayed;

/// Runs the scenario on a machine that has already had the same request, so that its graphs are
/// prepared, as for a live engine that is measured. Records the run if `record` is set.
pub(in crate::simulate) fn run(
    scenario: &Scenario,
    machine: &Machine,
    record: bool,
) -> Result<(Simulated, Option<Recording>), SimulateError> {
    run_once(scenario, machine, Warmth::Warm, record)
}

fn run_once(
    scenario: &Scenario,
    machine: &Machine,
    warmth: Warmth,
    record: bool,
) -> Result<(Simulated, Option<Recording>), SimulateError> {
    check(scenario)?;
    let on = On { scenario, machine, devices: Devices::new(scenario, machine)? };
    let mut engine = on.engine(None)?;
    let ids = vec![0; scenario.prompt];
    let caller =
        Caller { ids: &ids, decode: scenario.decode, verify: scenario.verify, cancel: None };
    if warmth == Warmth::Warm {
        engine.run(&caller).map_err(fail)?;
    }
    if record {
        engine.recorder().set_scope(Scope::All);
    }
    let seen = engine.run(&caller).map_err(fail)?;
    let recording = record.then(|| on.recording(&engine));
    Ok((figures(&seen, scenario, &on.devices), recording))
}

/// What a machine has done before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Warmth {
    /// The same request: its graphs are prepared.
    Warm,
    /// Nothing.
    Cold,
}

/// Runs the scenario, and returns the figures.
pub(super) fn run_warm(
    scenario: &Scenario,
    machine: &Machine,
    warmth: Warmth,
) -> Result<Simulated, SimulateError> {
    Ok(run_once(scenario, machine, warmth, false)?.0)
}

/// Serves requests on a machine that has already had the same ones.
pub(in crate::simulate) fn serve(
    scenario: &Scenario,
    machine: &Machine,
    traffic: &Traffic,
    record: bool,
) -> Result<Replayed, SimulateError> {
    check(scenario)?;
    traffic.check().map_err(fail)?;
    let on = On { scenario, machine, devices: Devices::new(scenario, machine)? };
    let mut engine = on.engine(Some(traffic))?;
    engine.serve_traffic(traffic).map_err(fail)?;
    if record {
        engine.recorder().set_scope(Scope::All);
    }
    let outcome = engine.serve_traffic(traffic).map_err(fail)?;
    let recording = record.then(|| on.recording(&engine));
    let devices = on.devices.infos().into_iter().map(|info| info.name).collect();
    Ok(Replayed { outcome, devices, recording })
}

pub(super) fn fail(error: SocRunError) -> SimulateError {
    SimulateError::Run { reason: error.to_string() }
}

/// Rejects settings that a machine's numbers do not cover.
fn check(scenario: &Scenario) -> Result<(), SimulateError> {
    let refused = |key: &str, value: &str, expected: &str| SimulateError::BadValue {
        key: key.to_owned(),
        value: value.to_owned(),
        expected: expected.to_owned(),
    };
    if !scenario.fast_sync {
        let expected = "it must be on: a machine's devices state their own synchronisation times, such as gpu.sync";
        return Err(refused("fast-sync", "off", expected));
    }
    if scenario.interference != Interference::None {
        let expected = "it must be none: a machine has no number for other load";
        return Err(refused("interference", &scenario.interference.to_string(), expected));
    }
    Ok(())
}

fn figures(seen: &Seen, scenario: &Scenario, devices: &Devices) -> Simulated {
    let Seen { begin, first, last, later, .. } = seen;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let prefill_ms = ms(first.at.since(begin.at));
    let decode_ms = (*later > 0).then(|| ms(last.at.since(first.at)));
    let rows = *later as f64;
    let (before, after) = (&begin.usage, &last.usage);
    let usage = before.devices.iter().zip(&after.devices);
    let used = |(info, (before, after)): (DeviceInfo, (&DeviceUsage, &DeviceUsage))| DeviceUse {
        name: info.name,
        busy_ms: ms(after.busy.since(before.busy)),
        runs: after.runs - before.runs,
    };
    let mut uses: Vec<DeviceUse> = devices.infos().into_iter().zip(usage).map(used).collect();
    uses.sort_by(|a, b| a.name.cmp(&b.name));
    let busy: f64 = uses.iter().map(|device| device.busy_ms).sum();
    let any = ms(after.any.since(before.any));
    Simulated {
        prefill_ms,
        prefill_tokens_per_second: scenario.prompt as f64 / prefill_ms * 1e3,
        decode_ms,
        decode_tokens_per_second: decode_ms.map(|ms| rows / ms * 1e3),
        makespan_ms: ms(last.at.since(begin.at)),
        lower_bound_ms: ms(seen.lower_bound()),
        preparation_ms: after.preparing_ms - before.preparing_ms,
        energy_j: None,
        power_w: None,
        prefill_j: None,
        prefill_w: None,
        decode_j: None,
        decode_w: None,
        decode_gb_per_s: None,
        overlap: if busy > 0.0 { ((busy - any) / busy).max(0.0) } else { 0.0 },
        syncs: after.hand_overs - before.hand_overs,
        frames_per_second: None,
        devices: uses,
    }
}
