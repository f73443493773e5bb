//! Runs a scenario's actors in virtual time.

use std::sync::Arc;

use lapwing_actors::simulate::soc::{SocModel, SocOptions, SocOutcome, SocSimulation};
use lapwing_plan::registry::ChoiceError;
use lapwing_plan::soc::{Soc, SyncMode};
use lapwing_plan::strategy::{Guarded, OrderSwap, Strategy, StrategyOptions};
use lapwing_traces::Recording;

use super::error::SimulateError;
use super::interference::Interference;
use super::scenario::Choice;
use super::scenario::Scenario;
use super::simulated::Simulated;

/// Runs the scenario on a SoC, and records the run if `record` is set.
pub(super) fn run(
    scenario: &Scenario,
    soc: &Soc,
    record: bool,
) -> Result<(Simulated, Option<Recording>), SimulateError> {
    let fail = |reason: String| SimulateError::Run { reason };
    let (model, bits) = scenario.load_model()?;
    let model = SocModel::of_model(&scenario.model, &model, bits);
    let default = SocOptions::default();
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
        record,
        ..default
    };
    let strategy = strategy(scenario, options.in_flight)?;
    let simulation = SocSimulation::new(&model, soc, &strategy, &options);
    let simulation = simulation.map_err(|error| fail(error.to_string()))?;
    let mut outcome = simulation.run().map_err(|error| fail(error.to_string()))?;
    let mut recording = outcome.recording.take();
    if let Some(recording) = &mut recording {
        recording.meta.extend(scenario.facts());
    }
    Ok((figures(&outcome, options.renderer), recording))
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
        energy_j: Some(outcome.energy_j),
        power_w: Some(outcome.power_w),
        prefill_j: Some(prefill.energy_j),
        prefill_w: Some(prefill.power_w),
        decode_j: decode.map(|phase| phase.energy_j),
        decode_w: decode.map(|phase| phase.power_w),
        decode_gb_per_s: decode.map(|phase| phase.gigabytes / phase.ms * 1e3),
        overlap: outcome.overlap.max(0.0),
        syncs: prefill.hand_overs + decode.map_or(0, |phase| phase.hand_overs),
        frames_per_second: game.then(|| {
            let phases = [Some(prefill), decode];
            let frames = phases.iter().flatten().map(|phase| phase.frames_per_second * phase.ms);
            frames.sum::<f64>() / outcome.makespan_ms
        }),
    }
}
