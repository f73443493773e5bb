//! Runs a scenario's actors in virtual time.

use std::sync::Arc;

use lapwing_actors::simulate::SocRunError;
use lapwing_actors::simulate::soc::{
    SocModel, SocOptions, SocOutcome, SocPhase, SocSimulation, SocUnit,
};
use lapwing_actors::simulate::traffic::{Traffic, TrafficOutcome};
use lapwing_engine::config::permits_default;
use lapwing_kernels::device::DeviceKind;
use lapwing_plan::Route;
use lapwing_plan::registry::ChoiceError;
use lapwing_plan::soc::{Soc, SyncMode};
use lapwing_plan::strategy::{Guarded, OrderSwap, Strategy, StrategyOptions};
use lapwing_traces::Recording;

use super::error::SimulateError;
use super::interference::Interference;
use super::scenario::Choice;
use super::scenario::Scenario;
use super::simulated::{DeviceUse, Simulated};

/// Runs the scenario on a SoC, and records the run if `record` is set.
pub(super) fn run(
    scenario: &Scenario,
    soc: &Soc,
    record: bool,
) -> Result<(Simulated, Option<Recording>), SimulateError> {
    let model = soc_model(scenario)?;
    let options = SocOptions { record, ..options(scenario)? };
    let strategy = strategy(scenario, options.in_flight)?;
    let simulation = SocSimulation::new(&model, soc, &strategy, &options).map_err(fail)?;
    let devices = simulation.devices().collect::<Vec<_>>().join(" + ");
    let mut outcome = simulation.run().map_err(fail)?;
    let recording = outcome.recording.take().map(|recording| told(recording, scenario, devices));
    Ok((figures(&outcome, options.renderer), recording))
}

/// The routes of a prompt and of a step of decode. Their devices are numbered as [`Soc::KINDS`] lists them.
pub(super) fn routes(scenario: &Scenario, soc: &Soc) -> Result<[Arc<Route>; 2], SimulateError> {
    let (model, options) = (soc_model(scenario)?, options(scenario)?);
    let strategy = strategy(scenario, options.in_flight)?;
    let simulation = SocSimulation::new(&model, soc, &strategy, &options).map_err(fail)?;
    Ok(simulation.routes().clone())
}

/// Serves requests on a SoC. Returns the names of the devices, too, in the order of their figures.
pub(super) fn serve(
    scenario: &Scenario,
    soc: &Soc,
    traffic: &Traffic,
    record: bool,
) -> Result<Replayed, SimulateError> {
    let model = soc_model(scenario)?;
    let mut options = SocOptions { record, ..options(scenario)? };
    // The draft model needs a processor that may otherwise only control.
    if traffic.draft.is_some() && options.adds_cpu && options.own.is_empty() {
        options.devices = Soc::KINDS.to_vec();
    }
    let devices = options.devices.len() + options.own.len();
    options.in_flight = scenario.permits.unwrap_or_else(|| permits_default(devices));
    let strategy = strategy(scenario, options.in_flight)?;
    let simulation = SocSimulation::with_traffic(&model, soc, &strategy, &options, traffic);
    let simulation = simulation.map_err(fail)?;
    let devices: Vec<String> = simulation.devices().map(str::to_owned).collect();
    let mut outcome = simulation.serve(traffic).map_err(fail)?;
    let recording = outcome.recording.take();
    let recording = recording.map(|recording| told(recording, scenario, devices.join(" + ")));
    Ok(Replayed { outcome, devices, recording })
}

/// What requests did on some devices.
pub(super) struct Replayed {
    pub(super) outcome: TrafficOutcome,
    /// Names, in the order of the figures.
    pub(super) devices: Vec<String>,
    pub(super) recording: Option<Recording>,
}

fn fail(error: SocRunError) -> SimulateError {
    SimulateError::Run { reason: error.to_string() }
}

/// A recording with the facts of its scenario.
pub(super) fn told(mut recording: Recording, scenario: &Scenario, devices: String) -> Recording {
    recording.meta.extend(scenario.facts());
    recording.meta.insert("devices".to_owned(), devices);
    recording
}

/// The scenario's model.
pub(super) fn soc_model(scenario: &Scenario) -> Result<SocModel, SimulateError> {
    let (model, bits) = scenario.load_model()?;
    Ok(SocModel::of_model(&scenario.model, &model, bits))
}

fn options(scenario: &Scenario) -> Result<SocOptions, SimulateError> {
    let default = SocOptions::default();
    let picked = scenario.pick()?;
    let options = SocOptions {
        prompt: scenario.prompt,
        decode: scenario.decode,
        verify: scenario.verify,
        sync: if scenario.fast_sync { SyncMode::Fast } else { SyncMode::Slow },
        stepped_preparation: scenario.stepped_preparation,
        chunk_rows: scenario.chunk,
        in_flight: scenario.permits.unwrap_or(default.in_flight),
        policy: scenario.policy.clone(),
        renderer: scenario.interference == Interference::Game,
        seed: scenario.seed,
        devices: picked.present.iter().map(|at| Soc::KINDS[*at]).collect(),
        adds_cpu: !picked.is_chosen,
        own: picked.own,
        ..default
    };
    check_game(&options)?;
    Ok(options)
}

/// Rejects a game where no GPU draws its frames.
fn check_game(options: &SocOptions) -> Result<(), SimulateError> {
    let gpu = DeviceKind::Gpu;
    let has_gpu = options.devices.contains(&gpu)
        || options.own.iter().any(|device| device.info().kind == gpu);
    match options.renderer && !has_gpu {
        false => Ok(()),
        true => Err(SimulateError::BadValue {
            key: "interference".to_owned(),
            value: Interference::Game.to_string(),
            expected: "it must be none: no device is a GPU, which would draw the frames".to_owned(),
        }),
    }
}

/// The scenario's strategy, with its options.
pub(super) fn strategy(
    scenario: &Scenario,
    in_flight: usize,
) -> Result<Arc<dyn Strategy>, SimulateError> {
    let name = match &scenario.choice {
        Choice::Own(own) => return Ok(Arc::new(Guarded::new(Arc::clone(own)))),
        Choice::Named(name) => name,
    };
    let settings = StrategyOptions {
        order_swap: if scenario.order_swap { OrderSwap::On } else { OrderSwap::Off },
        chunk: scenario.chunk,
        moment: scenario.moment,
        in_flight,
        ..StrategyOptions::default()
    };
    let known = &scenario.strategies;
    let unknown = |error: ChoiceError| SimulateError::Run { reason: error.to_string() };
    known.get(name, &settings).map_err(unknown)
}

fn figures(outcome: &SocOutcome, game: bool) -> Simulated {
    let SocOutcome { prefill, decode, .. } = outcome;
    let decode = decode.as_ref();
    Simulated {
        prefill_ms: outcome.prefill_ms,
        prefill_tokens_per_second: outcome.prefill_tokens_per_second,
        decode_ms: decode.map(|phase| phase.ms),
        decode_tokens_per_second: outcome.decode_tokens_per_second,
        makespan_ms: outcome.makespan_ms,
        lower_bound_ms: outcome.lower_bound_ms,
        preparation_ms: outcome.preparation_ms,
        energy_j: outcome.energy_j,
        power_w: outcome.power_w,
        prefill_j: prefill.energy_j,
        prefill_w: prefill.power_w,
        decode_j: decode.and_then(|phase| phase.energy_j),
        decode_w: decode.and_then(|phase| phase.power_w),
        decode_gb_per_s: decode.map(|phase| phase.gigabytes / phase.ms * 1e3),
        overlap: outcome.overlap.max(0.0),
        syncs: prefill.hand_overs + decode.map_or(0, |phase| phase.hand_overs),
        frames_per_second: game.then(|| {
            let phases = [Some(prefill), decode];
            let frames = phases.iter().flatten().map(|phase| phase.frames_per_second * phase.ms);
            frames.sum::<f64>() / outcome.makespan_ms
        }),
        devices: devices(prefill, decode),
    }
}

/// What each device did in both phases.
fn devices(prefill: &SocPhase, decode: Option<&SocPhase>) -> Vec<DeviceUse> {
    let used = |(at, unit): (usize, &SocUnit)| {
        let later = decode.map(|phase| &phase.units[at]);
        DeviceUse {
            name: unit.name.clone(),
            busy_ms: unit.busy_ms + later.map_or(0.0, |later| later.busy_ms),
            runs: unit.runs + later.map_or(0, |later| later.runs),
        }
    };
    prefill.units.iter().enumerate().map(used).collect()
}
