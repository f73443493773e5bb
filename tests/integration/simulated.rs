//! A real model on CPU devices in virtual time.

use std::sync::Arc;

use lapwing_actors::drive::simulated::{SimulatedDevice, Simulation, SimulationParts};
use lapwing_actors::policy::Fcfs;
use lapwing_actors::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use lapwing_kernels::cpu::{Cpu, CpuDevice, CpuDeviceParts, Isa};
use lapwing_kernels::device::{Blocking, DeviceInfo, DeviceKind, ModelId, SlotPool};
use lapwing_kernels::kv::{KvPool, KvStore};
use lapwing_kernels::model::Model;
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::Strategy;
use lapwing_plan::time::{FixedRate, TimeModel};

use crate::support::{SMOLLM2, model};

/// Settings of a simulation.
pub(crate) struct Simulated<'a> {
    pub(crate) devices: &'a [&'a str],
    pub(crate) strategy: Arc<dyn Strategy>,
    pub(crate) rate: FixedRate,
    pub(crate) chunk_rows: usize,
    pub(crate) pages: u32,
}

impl Simulated<'_> {
    /// SmolLM2 with its true values.
    pub(crate) fn start(&self) -> Simulation {
        let file = WeightFile::open(&model(SMOLLM2)).expect("a weight file");
        let model = Model::from_weights(&file).expect("a model");
        let layout = model.config.kv_layout();
        let graph = Arc::new(model.graph);
        let kv = Arc::new(KvStore::new(layout.clone(), self.pages).expect("memory"));
        let slots = SlotPool::default();
        let time: Arc<dyn TimeModel> = Arc::new(self.rate);
        let device = |name: &&str| {
            let parts = CpuDeviceParts {
                name: (*name).to_owned(),
                cpu: Cpu::new(2, Isa::best()),
                graph: Arc::clone(&graph),
                kv: Arc::clone(&kv),
                slots: slots.clone(),
            };
            let device = CpuDevice::new(parts, &file).expect("a device");
            let info = DeviceInfo::new(*name, DeviceKind::Cpu);
            let device = Box::new(Blocking::new(info, device));
            SimulatedDevice { device, time: Arc::clone(&time) }
        };
        let info = |name: &&str| DeviceInfo::new(*name, DeviceKind::Cpu);
        let times = self.devices.iter().map(|_| Arc::clone(&time)).collect();
        let cost = Modelled { devices: times, sync: self.rate.per_stage, copy_rate: 1e10 };
        let scheduler = Scheduler::new(SchedulerParts {
            config: SchedulerConfig {
                context: 2048,
                sequences_max: 8,
                permits: 2,
                vocab: graph.value(graph.output()).width,
            },
            planner: Planner::new(PlannerParts {
                model: ModelId::default(),
                graph: Arc::clone(&graph),
                devices: self.devices.iter().map(info).collect(),
                cost: Arc::new(cost),
                strategy: Arc::clone(&self.strategy),
                chunk_rows: self.chunk_rows,
            }),
            kv: KvPages { pool: KvPool::new(self.pages), states: KvPool::new(self.pages), layout },
            policy: Box::new(Fcfs),
        });
        Simulation::new(SimulationParts {
            scheduler: scheduler.expect("a route"),
            devices: self.devices.iter().map(device).collect(),
            graphs: vec![graph],
            slots,
            copy_rate: f64::INFINITY,
        })
    }
}
