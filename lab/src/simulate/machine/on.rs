//! A scenario on the devices of a machine.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::drive::simulated::{Environment, SimulatedDevice};
use lapwing_actors::scheduler::KvPages;
use lapwing_actors::simulate::shape_only_device::ShapeOnlyDevice;
use lapwing_actors::simulate::shape_queue::ShapeQueue;
use lapwing_actors::simulate::soc::SocModel;
use lapwing_actors::simulate::traffic::{DRAFT_MODEL, DraftModel, OtherModel, Traffic, pages};
use lapwing_actors::simulate::virtual_engine::{Rules, VirtualEngine, VirtualModel, VirtualParts};
use lapwing_actors::simulate::{OwnDevice, Tokens};
use lapwing_engine::config::{chunk_rows_default, permits_default};
use lapwing_engine::devices::{DeviceSpec, build};
use lapwing_kernels::device::{DeviceInfo, ModelId, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::KvSize;
use lapwing_plan::DeviceId;
use lapwing_plan::cost::{AsSimulated, CostModel, Modelled};
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::soc::{WeightBits, Workload};
use lapwing_plan::strategy::{OneDevice, Strategy};
use lapwing_plan::time::TimeModel;
use lapwing_traces::Recording;

use super::Machine;
use super::planned::Planned;
use super::run::fail;
use crate::simulate::error::SimulateError;
use crate::simulate::scenario::{Picked, Scenario};
use crate::simulate::world;

/// The devices of a run: some of the machine's, then devices of the caller's own.
pub(super) struct Devices {
    specs: Vec<DeviceSpec>,
    own: Vec<OwnDevice>,
}

impl Devices {
    pub(super) fn new(scenario: &Scenario, machine: &Machine) -> Result<Devices, SimulateError> {
        let Picked { present, own, .. } = scenario.pick()?;
        let mut specs = machine.specs()?;
        let mut at = 0..;
        specs.retain(|_| at.next().is_some_and(|at| present.contains(&at)));
        Ok(Devices { specs, own })
    }

    pub(super) fn infos(&self) -> Vec<DeviceInfo> {
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

/// A scenario on a machine.
pub(super) struct On<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) machine: &'a Machine,
    pub(super) devices: Devices,
}

impl On<'_> {
    /// The engine, configured like a live one with default settings.
    pub(super) fn engine(&self, traffic: Option<&Traffic>) -> Result<VirtualEngine, SimulateError> {
        let On { scenario, machine, devices } = self;
        let model = world::soc_model(scenario)?;
        let context = scenario.prompt + (scenario.decode + 1) * scenario.verify + 2;
        let context = traffic.map_or(context, Traffic::context);
        // One sequence has one place for its states.
        let one = || KvSize {
            pages: u32::try_from(model.kv.pages_for(context)).unwrap_or(u32::MAX),
            states: 1,
        };
        let size = traffic.map_or_else(one, |traffic| traffic.kv(ModelId::default(), &model.kv));
        let with_cache = |mut info: DeviceInfo| {
            info.room = info.room.map(|room| room.with_cache(&model.kv, size));
            info
        };
        let infos: Vec<DeviceInfo> = devices.infos().into_iter().map(with_cache).collect();
        let count = infos.len();
        let permits = scenario.permits.unwrap_or_else(|| permits_default(count));
        let tokens = traffic.map(Traffic::tokens).unwrap_or_default();
        let target = Placed {
            number: ModelId::default(),
            infos,
            strategy: world::strategy(scenario, permits)?,
            kv: pages(&model.kv, size),
            context,
            tokens: &tokens,
            has_graphs: traffic.is_some_and(|traffic| traffic.rules.has_graphs),
            model,
        };
        let draft = traffic.filter(|traffic| traffic.drafts());
        let draft = draft.and_then(|traffic| Some((traffic, traffic.draft.as_ref()?)));
        let draft = draft.map(|(traffic, draft)| self.draft(traffic, draft, &tokens));
        let mut others: Vec<VirtualModel> = draft.transpose()?.into_iter().collect();
        if let Some(traffic) = traffic {
            for (number, other) in traffic.others() {
                others.push(self.other(number, other, traffic)?);
            }
        }
        let policy = scenario.policy.make();
        let parts = VirtualParts {
            model: self.model(target)?,
            others,
            slots: SlotPool::default(),
            policy: policy.map_err(|error| SimulateError::Run { reason: error.to_string() })?,
            sequences_max: traffic.map_or(1, |traffic| traffic.sequences_max),
            permits,
            rules: traffic.map_or_else(Rules::default, |traffic| traffic.rules.clone()),
            copy_rate: machine.copy.value * 1e9,
            env: Some(Environment {
                memory: machine.shared_memory.as_ref().map(|number| number.value),
                hand_over: hand_over(machine),
                shapes_only: true,
                ..Environment::default()
            }),
            order: (0..count).collect(),
        };
        VirtualEngine::new(parts).map_err(fail)
    }

    /// The draft model on its device.
    fn draft(
        &self,
        traffic: &Traffic,
        draft: &DraftModel,
        tokens: &Tokens,
    ) -> Result<VirtualModel, SimulateError> {
        let infos = self.devices.infos().into_iter();
        let infos: Vec<_> = infos.map(|info| DeviceInfo { room: None, ..info }).collect();
        let device = DeviceId(draft.place(&infos).map_err(fail)?);
        self.model(Placed {
            number: DRAFT_MODEL,
            infos,
            strategy: Arc::new(OneDevice { device }),
            kv: pages(&draft.model.kv, traffic.kv(ModelId::default(), &draft.model.kv)),
            context: traffic.draft_context(),
            tokens,
            has_graphs: traffic.rules.has_graphs,
            model: draft.model.clone(),
        })
    }

    /// Another model, on its device or by the strategy.
    fn other(
        &self,
        number: ModelId,
        other: &OtherModel,
        traffic: &Traffic,
    ) -> Result<VirtualModel, SimulateError> {
        let infos = self.devices.infos();
        let permits = self.scenario.permits.unwrap_or_else(|| permits_default(infos.len()));
        let strategy: Arc<dyn Strategy> = match other.place(&infos).map_err(fail)? {
            None => world::strategy(self.scenario, permits)?,
            Some(device) => Arc::new(OneDevice { device: DeviceId(device) }),
        };
        self.model(Placed {
            number,
            infos,
            strategy,
            kv: pages(&other.model.kv, traffic.kv(number, &other.model.kv)),
            context: traffic.context(),
            tokens: &Tokens::default(),
            has_graphs: traffic.rules.has_graphs,
            model: other.model.clone(),
        })
    }

    /// A model on the devices.
    fn model(&self, placed: Placed<'_>) -> Result<VirtualModel, SimulateError> {
        let Placed { number, model, infos, strategy, kv, context, tokens, has_graphs } = placed;
        let graph = &model.workload.graph;
        let times = self.devices.times(graph)?;
        let own = self.devices.own.iter().map(|device| device.name().to_owned()).collect();
        let cost: Arc<dyn CostModel> = match &self.scenario.planned {
            Some(Planned::Profile(fitted)) => Arc::clone(fitted) as Arc<dyn CostModel>,
            Some(Planned::Machine(machine)) => {
                let times = Devices::new(self.scenario, machine)?.times(graph)?;
                Arc::new(AsSimulated { models: modelled(machine, times), own })
            }
            None => Arc::new(AsSimulated { models: modelled(self.machine, times.clone()), own }),
        };
        let chunk_rows = self.scenario.chunk.unwrap_or_else(|| self.devices.chunk_rows());
        let device = |(info, time): (&DeviceInfo, Arc<dyn TimeModel>)| {
            let device = ShapeOnlyDevice::new(info, graph).yielding(tokens).prepared(has_graphs);
            SimulatedDevice { device: Box::new(ShapeQueue::new(info.clone(), device)), time }
        };
        let on = infos.iter().zip(times).map(device).collect();
        let planner = Planner::new(PlannerParts {
            model: number,
            graph: Arc::clone(graph),
            cost,
            devices: infos,
            strategy,
            chunk_rows,
        });
        Ok(VirtualModel::new(planner, kv, context, on))
    }

    pub(super) fn recording(&self, engine: &VirtualEngine) -> Recording {
        world::told(engine.recorder().recording(), self.scenario, self.devices.to_string())
    }
}

fn hand_over(machine: &Machine) -> Duration {
    Duration::from_nanos((machine.hand_over.value * 1e3).round() as u64)
}

/// What strategies predict with, with these time models of the devices.
fn modelled(machine: &Machine, devices: Vec<Arc<dyn TimeModel>>) -> Modelled {
    Modelled { devices, sync: hand_over(machine), copy_rate: machine.copy.value * 1e9 }
}

/// A model with what it is given of the devices.
struct Placed<'a> {
    number: ModelId,
    model: SocModel,
    infos: Vec<DeviceInfo>,
    strategy: Arc<dyn Strategy>,
    kv: KvPages,
    context: usize,
    tokens: &'a Tokens,
    has_graphs: bool,
}
