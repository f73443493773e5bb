//! Runs a machine in virtual time.

use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::drive::simulated::{Environment, SimulatedDevice};
use lapwing_actors::scheduler::KvPages;
use lapwing_actors::simulate::shape_only_device::ShapeOnlyDevice;
use lapwing_actors::simulate::virtual_engine::{Caller, Seen, VirtualEngine, VirtualParts};
use lapwing_kernels::device::{Blocking, DeviceInfo, ModelId, SlotPool};
use lapwing_kernels::kv::KvPool;
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_traces::{Recording, Scope};

use super::Machine;
use crate::simulate::error::SimulateError;
use crate::simulate::interference::Interference;
use crate::simulate::scenario::Scenario;
use crate::simulate::simulated::Simulated;
use crate::simulate::world;
use lapwing_engine::config::{chunk_rows_default, permits_default};
use lapwing_engine::devices::{DeviceSpec, build};

/// Runs the scenario on a machine that has already had the same request, so that its graphs are
/// prepared, as for a live engine that is measured. Records the run if `record` is set.
pub(in crate::simulate) fn run(
    scenario: &Scenario,
    machine: &Machine,
    record: bool,
) -> Result<(Simulated, Option<Recording>), SimulateError> {
    check(scenario)?;
    let fail = |reason: String| SimulateError::Run { reason };
    let specs = machine.specs()?;
    let mut engine = start(scenario, machine, &specs)?;
    let ids = vec![0; scenario.prompt];
    let caller =
        Caller { ids: &ids, decode: scenario.decode, verify: scenario.verify, cancel: None };
    engine.run(&caller).map_err(|error| fail(error.to_string()))?;
    if record {
        engine.recorder().set_scope(Scope::All);
    }
    let seen = engine.run(&caller).map_err(|error| fail(error.to_string()))?;
    let recording = record.then(|| {
        let mut recording = engine.recorder().recording();
        recording.meta.extend(scenario.facts());
        let devices: Vec<String> = specs.iter().map(ToString::to_string).collect();
        recording.meta.insert("devices".to_owned(), devices.join(" + "));
        recording
    });
    Ok((figures(&seen, scenario), recording))
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

/// The engine, configured like a live one with default settings.
fn start(
    scenario: &Scenario,
    machine: &Machine,
    specs: &[DeviceSpec],
) -> Result<VirtualEngine, SimulateError> {
    let model = scenario.load_model()?.0;
    let layout = model.config.kv_layout();
    let graph = Arc::new(model.graph);
    let times = specs.iter().map(|spec| build::time_model(spec, &graph, build::estimated(1)));
    let times = times
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| SimulateError::Preset { reason: error.to_string() })?;
    let infos: Vec<DeviceInfo> = specs.iter().map(build::info).collect();
    let copy_rate = machine.copy.value * 1e9;
    let hand_over = Duration::from_nanos((machine.hand_over.value * 1e3).round() as u64);
    let permits = scenario.permits.unwrap_or_else(|| permits_default(specs.len()));
    let planner = Planner::new(PlannerParts {
        model: ModelId::default(),
        graph: Arc::clone(&graph),
        devices: infos.clone(),
        cost: Arc::new(Modelled { devices: times.clone(), sync: hand_over, copy_rate }),
        strategy: world::strategy(scenario, permits)?,
        chunk_rows: chunk_rows_default(specs.iter()),
    });
    let context = scenario.prompt + (scenario.decode + 1) * scenario.verify + 2;
    let pages = u32::try_from(layout.pages_for(context)).unwrap_or(u32::MAX);
    let device = |(info, time)| {
        let device = Blocking::new(DeviceInfo::clone(info), ShapeOnlyDevice::new(info, &graph));
        SimulatedDevice { device: Box::new(device), time }
    };
    let order = (0..specs.len()).collect();
    let policy = scenario.policy.make();
    let policy = policy.map_err(|error| SimulateError::Run { reason: error.to_string() })?;
    let devices = infos.iter().zip(times).map(device).collect();
    VirtualEngine::new(VirtualParts {
        graph,
        planner,
        devices,
        kv: KvPages { pool: KvPool::new(pages), layout },
        slots: SlotPool::default(),
        policy,
        context,
        permits,
        copy_rate,
        env: Environment { hand_over, shapes_only: true, ..Environment::default() },
        order,
    })
    .map_err(|error| SimulateError::Run { reason: error.to_string() })
}

fn figures(seen: &Seen, scenario: &Scenario) -> Simulated {
    let Seen { begin, first, last, later, .. } = seen;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let prefill_ms = ms(first.at.since(begin.at));
    let decode_ms = (*later > 0).then(|| ms(last.at.since(first.at)));
    let rows = *later as f64;
    let (before, after) = (&begin.usage, &last.usage);
    let devices = || before.devices.iter().zip(&after.devices);
    let busy: f64 = devices().map(|(before, after)| ms(after.busy.since(before.busy))).sum();
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
    }
}
