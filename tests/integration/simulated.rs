//! A real model on CPU devices in virtual time.

use std::path::Path;
use std::sync::Arc;

use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::drive::simulated::{SimulatedDevice, Simulation, SimulationParts};
use lapwing_actors::message::{Generate, SchedulerMessage, StreamEvent, Submit, Task, Traced};
use lapwing_actors::policy::{ClientId, Fcfs, Urgency};
use lapwing_actors::prefix::PrefixUse;
use lapwing_actors::sample::{Sampler, SamplingParams};
use lapwing_actors::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use lapwing_actors::sequence::AdmissionLimit;
use lapwing_kernels::cpu::{Cpu, CpuDevice, CpuDeviceParts, Isa};
use lapwing_kernels::device::{Blocking, DeviceInfo, DeviceKind, ModelId, SlotPool};
use lapwing_kernels::kv::{KvPool, KvStore};
use lapwing_kernels::model::Model;
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::Strategy;
use lapwing_plan::time::{FixedRate, TimeModel};
use lapwing_traces::Nanos;

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
        self.start_with(&model(SMOLLM2))
    }

    /// A model of a file with its true values.
    pub(crate) fn start_with(&self, path: &Path) -> Simulation {
        let file = WeightFile::open(path).expect("a weight file");
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

/// The greedy answers to prompts that arrive at once, of so many tokens at most.
pub(crate) fn tokens_of(
    simulation: &mut Simulation,
    prompts: &[Vec<u32>],
    tokens_max: usize,
    stop_ids: &[u32],
) -> Vec<Vec<u32>> {
    let limit = AdmissionLimit::new(prompts.len());
    let receivers: Vec<_> = prompts
        .iter()
        .map(|ids| {
            let (sink, receiver) = ChannelSink::new(tokens_max + 2);
            let task = Task::Generate(Box::new(Generate {
                sampler: Sampler::new(SamplingParams::greedy(), ids),
                stop_ids: stop_ids.into(),
                tokens_max,
                drafts: None,
            }));
            let submit = Submit {
                model: Default::default(),
                client: ClientId::anonymous(),
                urgency: Urgency::default(),
                prefix: PrefixUse::Off,
                ids: ids.clone(),
                task,
                sink,
                admission: limit.try_take().expect("a admission"),
                trace: tracing::Span::none(),
            };
            simulation.send_at(Nanos(0), SchedulerMessage::Submit(Box::new(submit)));
            receiver
        })
        .collect();
    assert!(simulation.run() > Nanos(0));
    let tokens = |event: Traced<StreamEvent>| match event.message {
        StreamEvent::Token(token) => Some(token.id),
        StreamEvent::Failed(error) => panic!("{error}"),
        _ => None,
    };
    receivers.iter().map(|r| r.try_iter().filter_map(tokens).collect()).collect()
}
