//! Runs a machine in virtual time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::drive::simulated::{DeviceUsage, Environment, SimulatedDevice};
use lapwing_actors::scheduler::KvPages;
use lapwing_actors::simulate::OwnDevice;
use lapwing_actors::simulate::shape_only_device::ShapeOnlyDevice;
use lapwing_actors::simulate::shape_queue::ShapeQueue;
use lapwing_actors::simulate::virtual_engine::{Caller, Seen, VirtualEngine, VirtualParts};
use lapwing_kernels::device::{DeviceInfo, ModelId, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::{KvPool, KvSize};
use lapwing_plan::cost::{AsSimulated, Modelled};
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::soc::{WeightBits, Workload};
use lapwing_plan::time::TimeModel;
use lapwing_traces::{Recording, Scope};

use super::Machine;
use crate::simulate::error::SimulateError;
use crate::simulate::interference::Interference;
use crate::simulate::scenario::{Picked, Scenario};
use crate::simulate::simulated::{DeviceUse, Simulated};
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
    let devices = Devices::new(scenario, machine)?;
    let mut engine = start(scenario, machine, &devices)?;
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
        recording.meta.insert("devices".to_owned(), devices.to_string());
        recording
    });
    Ok((figures(&seen, scenario, &devices), recording))
}

/// The devices of a run: some of the machine's, then devices of the caller's own.
struct Devices {
    specs: Vec<DeviceSpec>,
    own: Vec<OwnDevice>,
}

impl Devices {
    fn new(scenario: &Scenario, machine: &Machine) -> Result<Devices, SimulateError> {
        let Picked { present, own, .. } = scenario.pick()?;
        let mut specs = machine.specs()?;
        let mut at = 0..;
        specs.retain(|_| at.next().is_some_and(|at| present.contains(&at)));
        Ok(Devices { specs, own })
    }

    fn infos(&self) -> Vec<DeviceInfo> {
        let of_machine = self.specs.iter().enumerate().map(|(at, spec)| build::info(at, spec));
        of_machine.chain(self.own.iter().map(|device| device.info().clone())).collect()
    }

    fn times(&self, graph: &Arc<Graph>) -> Result<Vec<Arc<dyn TimeModel>>, SimulateError> {
        let workload = Workload { graph: Arc::clone(graph), bits: WeightBits::Stored };
        let mut times = Vec::with_capacity(self.specs.len() + self.own.len());
        for spec in &self.specs {
            let time = build::time_model(spec, graph, build::estimated(1));
            times.push(time.map_err(|error| SimulateError::Preset { reason: error.to_string() })?);
        }
        for device in &self.own {
            let time = device.times(&workload);
            times.push(time.map_err(|error| SimulateError::Run { reason: error.to_string() })?);
        }
        Ok(times)
    }

    /// Maximum prompt rows of a chunk: the rows of the largest graph, if a device has graphs.
    fn chunk_rows(&self) -> usize {
        let infos = self.infos();
        let graphs = infos.iter().filter(|info| info.is_static()).flat_map(|info| &info.sizes);
        graphs.copied().max().unwrap_or_else(|| chunk_rows_default(self.specs.iter()))
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let specs = self.specs.iter().map(ToString::to_string);
        let own = self.own.iter().map(|device| device.name().to_owned());
        f.write_str(&specs.chain(own).collect::<Vec<_>>().join(" + "))
    }
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
    devices: &Devices,
) -> Result<VirtualEngine, SimulateError> {
    let model = scenario.load_model()?.0;
    let layout = model.config.kv_layout();
    let graph = Arc::new(model.graph);
    let context = scenario.prompt + (scenario.decode + 1) * scenario.verify + 2;
    let pages = u32::try_from(layout.pages_for(context)).unwrap_or(u32::MAX);
    // One sequence has one place for its states.
    let size = KvSize { pages, states: 1 };
    let with_cache = |mut info: DeviceInfo| {
        info.room = info.room.map(|room| room.with_cache(&layout, size));
        info
    };
    let infos: Vec<DeviceInfo> = devices.infos().into_iter().map(with_cache).collect();
    let times = devices.times(&graph)?;
    let copy_rate = machine.copy.value * 1e9;
    let hand_over = Duration::from_nanos((machine.hand_over.value * 1e3).round() as u64);
    let permits = scenario.permits.unwrap_or_else(|| permits_default(infos.len()));
    let models = Modelled { devices: times.clone(), sync: hand_over, copy_rate };
    let own = devices.own.iter().map(|device| device.name().to_owned()).collect();
    let planner = Planner::new(PlannerParts {
        model: ModelId::default(),
        graph: Arc::clone(&graph),
        devices: infos.clone(),
        cost: Arc::new(AsSimulated { models, own }),
        strategy: world::strategy(scenario, permits)?,
        chunk_rows: scenario.chunk.unwrap_or_else(|| devices.chunk_rows()),
    });
    let device = |(info, time)| {
        let device = ShapeQueue::new(DeviceInfo::clone(info), ShapeOnlyDevice::new(info, &graph));
        SimulatedDevice { device: Box::new(device), time }
    };
    let order = (0..infos.len()).collect();
    let policy = scenario.policy.make();
    let policy = policy.map_err(|error| SimulateError::Run { reason: error.to_string() })?;
    let devices = infos.iter().zip(times).map(device).collect();
    VirtualEngine::new(VirtualParts {
        graph,
        planner,
        devices,
        kv: KvPages { pool: KvPool::new(pages), states: KvPool::new(1), layout },
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
