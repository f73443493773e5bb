//! From a scenario to a run of the actors in virtual time.

use std::sync::Arc;

use lapwing_actors::drive::soc::{SocModel, SocOptions, SocOutcome, SocSimulation};
use lapwing_actors::plan::soc::{SyncMode, WeightBits};
use lapwing_actors::plan::strategy::{OrderSwap, Strategy, StrategyOptions, by_name};
use lapwing_kernels::device::Prepare;
use lapwing_traces::event::Activity;
use lapwing_traces::{Recording, Timeline};

use super::scenario::{Choice, Interference};
use super::{Scenario, SimulateError, Simulated};

/// Runs it; with a recording, if that is wanted.
pub(super) fn run(
    scenario: &Scenario,
    record: bool,
) -> Result<(Simulated, Option<Recording>), SimulateError> {
    let fail = |reason: String| SimulateError::Run { reason };
    let (model, has_sizes) = scenario.load_model()?;
    let bits = if has_sizes { WeightBits::Stored } else { WeightBits::default() };
    let model = SocModel::of_model(&scenario.model, &model, bits);
    let options = SocOptions {
        prompt: scenario.prompt,
        decode: scenario.decode,
        verify: scenario.verify,
        sync: if scenario.fast_sync { SyncMode::Fast } else { SyncMode::Slow },
        stepped_preparation: scenario.stepped_preparation,
        chunk_rows: scenario.chunk,
        renderer: scenario.interference == Interference::Game,
        seed: scenario.seed,
        record,
        ..SocOptions::default()
    };
    let game = options.renderer;
    let start = |options: &SocOptions| {
        SocSimulation::new(&model, scenario.soc(), &strategy(scenario, options)?, options)
            .map_err(|error| fail(error.to_string()))
    };
    let mut simulation = start(&options)?;
    let mut routes = simulation.routes().iter().flat_map(|route| &route.stages);
    // Only the recording says how long graphs were prepared.
    let prepares = routes.any(|stage| stage.prepare == Prepare::OnTheSpot);
    if prepares && !record {
        simulation = start(&SocOptions { record: true, ..options })?;
    }
    let mut outcome = simulation.run().map_err(|error| fail(error.to_string()))?;
    let mut recording = outcome.recording.take();
    let preparation_ms = match &recording {
        Some(recording) if prepares => preparation_ms(recording),
        _ => 0.0,
    };
    if let Some(recording) = recording.as_mut().filter(|_| record) {
        recording.meta.extend(scenario.facts());
    }
    Ok((figures(&outcome, preparation_ms, game), recording.filter(|_| record)))
}

fn strategy(scenario: &Scenario, options: &SocOptions) -> Result<Arc<dyn Strategy>, SimulateError> {
    let name = match &scenario.choice {
        Choice::Own(own) => return Ok(Arc::clone(own)),
        Choice::Named(name) => name,
    };
    let settings = StrategyOptions {
        order_swap: if scenario.order_swap { OrderSwap::On } else { OrderSwap::Off },
        chunk: scenario.chunk,
        in_flight: options.in_flight,
        ..StrategyOptions::default()
    };
    by_name(name, &settings)
        .ok_or_else(|| SimulateError::Run { reason: format!("there is no strategy '{name}'") })
}

/// Time in which graphs were prepared.
fn preparation_ms(recording: &Recording) -> f64 {
    let timeline = Timeline::new(recording);
    let prepared = timeline.spans.iter().filter(|span| span.activity == Activity::Prepare);
    prepared.map(|span| span.duration() as f64 / 1e6).sum()
}

fn figures(outcome: &SocOutcome, preparation_ms: f64, game: bool) -> Simulated {
    let SocOutcome { prefill, decode, .. } = outcome;
    let decode = decode.as_ref();
    Simulated {
        prefill_ms: outcome.prefill_ms,
        prefill_tokens_per_second: outcome.prefill_tokens_per_second,
        decode_ms: decode.map(|phase| phase.ms),
        decode_tokens_per_second: outcome.decode_tokens_per_second,
        makespan_ms: outcome.makespan_ms,
        lower_bound_ms: outcome.lower_bound_ms,
        preparation_ms,
        energy_j: outcome.energy_j,
        power_w: outcome.power_w,
        prefill_j: prefill.energy_j,
        prefill_w: prefill.power_w,
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
