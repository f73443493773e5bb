//! An engine in virtual time with two models on CPUs and GPUs, all oracles.

use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::drive::simulated::{SimulatedDevice, Simulation, SimulationParts};
use lapwing_actors::message::{SchedulerMessage, StreamEvent, Submit, Task, Traced};
use lapwing_actors::policy::{ClientId, Fcfs, Urgency};
use lapwing_actors::prefix::{PrefixCache, PrefixUse};
use lapwing_actors::scheduler::{
    KvPages, Scheduler, SchedulerConfig, SchedulerModel, SchedulerParts,
};
use lapwing_actors::sequence::AdmissionLimit;
use lapwing_kernels::device::{Blocking, DeviceInfo, DeviceKind, ModelId, PerModel, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::KvPool;
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::{CpuOnly, GpuOnly, Strategy};
use lapwing_plan::time::{FixedRate, TimeModel};
use lapwing_traces::Nanos;

use crate::late::Late;
use crate::oracle::{Fault, Form, Memory, Oracle, PAGE_ROWS, VOCAB, graph_of, layout};
use crate::sampled_distribution::{Markov, Table};

/// Layers of each model.
const LAYERS: [usize; 2] = [4, 1];
/// More events than any stream has.
const EVENTS_MAX: usize = 128;

/// What an engine with two models consists of.
pub(crate) struct Setup {
    /// Strategy of each model.
    pub(crate) strategies: [Arc<dyn Strategy>; 2],
    pub(crate) permits: usize,
    pub(crate) sequences_max: usize,
    pub(crate) chunk_rows: usize,
    /// Pages of each model.
    pub(crate) pages: [u32; 2],
    /// One of so many tokens of the second model is wrong, if any.
    pub(crate) wrong: Option<u64>,
    /// Of each model's devices.
    pub(crate) faults: [Fault; 2],
    /// Time of a stage and of a row, of each device: a CPU, a GPU, and another CPU. A third CPU is like the first, and
    /// another GPU like the GPU.
    pub(crate) rates: [(u64, u64); 3],
    /// Limits of the second model.
    pub(crate) context_of_draft: usize,
    pub(crate) vocab_of_draft: usize,
    /// Both models are Markov chains, and no oracles.
    pub(crate) markov: Option<[Table; 2]>,
    /// Number of devices, of those that `rates` names.
    pub(crate) devices: usize,
    /// Whether the second model is given the hidden states of the first one.
    pub(crate) given: bool,
    /// Places of states of the first model, if its layers have states.
    pub(crate) states: Option<u32>,
    /// Whether requests share prefixes.
    pub(crate) prefixes: bool,
    /// The seed of delays, if devices have queues of two runs and complete them late.
    pub(crate) late: Option<u64>,
}

impl Default for Setup {
    fn default() -> Setup {
        let none: Fault = Arc::new(|_| None);
        Setup {
            strategies: [Arc::new(GpuOnly), Arc::new(CpuOnly)],
            permits: 4,
            sequences_max: 8,
            chunk_rows: 16,
            pages: [64, 64],
            wrong: Some(5),
            faults: [Arc::clone(&none), none],
            rates: [(20, 2), (90, 3), (15, 1)],
            context_of_draft: 128,
            vocab_of_draft: VOCAB,
            markov: None,
            devices: 5,
            given: false,
            states: None,
            prefixes: false,
            late: None,
        }
    }
}

pub(crate) struct Engine {
    pub(crate) sim: Simulation,
    pub(crate) pools: [KvPool; 2],
    states: KvPool,
    pub(crate) admission: AdmissionLimit,
    /// Urgency of the next requests.
    pub(crate) urgency: Urgency,
}

/// A device with both models.
fn device(
    setup: &Setup,
    info: &DeviceInfo,
    rate: &FixedRate,
    graphs: &[Arc<Graph>; 2],
    memories: &[Memory; 2],
) -> SimulatedDevice {
    let oracle = |model: usize| {
        let fault = Arc::clone(&setup.faults[model]);
        Oracle::new(info.clone(), &graphs[model], &memories[model], fault)
    };
    let time = Arc::new(*rate);
    if let Some(tables) = &setup.markov {
        let chain = |model: usize| {
            let chain = Markov { table: tables[model], logits: graphs[model].output() };
            Blocking::new(info.clone(), chain)
        };
        return SimulatedDevice { device: Box::new(PerModel::new(chain(0), [chain(1)])), time };
    }
    let draft = oracle(1).wrong_one_of(setup.wrong);
    if let Some(seed) = setup.late {
        let live = Arc::default();
        let late = |oracle| Late::new(info.clone(), oracle, &live, seed);
        let device = Box::new(PerModel::new(late(oracle(0)), [late(draft)]));
        return SimulatedDevice { device, time };
    }
    let of_model = |oracle: Oracle| Blocking::new(info.clone(), oracle);
    let device = Box::new(PerModel::new(of_model(oracle(0)), [of_model(draft)]));
    SimulatedDevice { device, time }
}

impl Engine {
    pub(crate) fn new(setup: &Setup) -> Engine {
        let forms = [
            Form { states: setup.states.is_some(), passes_on: setup.given, given: false },
            Form { given: setup.given, ..Form::default() },
        ];
        let graphs = [0, 1].map(|model| Arc::new(graph_of(LAYERS[model], forms[model])));
        let states = KvPool::new(setup.states.unwrap_or(0));
        let kinds = [
            ("cpu", DeviceKind::Cpu),
            ("gpu", DeviceKind::Gpu),
            ("cpu-2", DeviceKind::Cpu),
            ("cpu-3", DeviceKind::Cpu),
            ("gpu-2", DeviceKind::Gpu),
        ];
        let depth = if setup.late.is_some() { 2 } else { 1 };
        let info = |(name, kind)| DeviceInfo { depth, ..DeviceInfo::new(name, kind) };
        let infos: Vec<_> = kinds.into_iter().take(setup.devices).map(info).collect();
        let [cpu, gpu, other] = setup.rates.map(|(stage, row)| {
            let [per_stage, per_row] = [stage, row].map(Duration::from_micros);
            FixedRate { per_stage, per_row }
        });
        let rates = [cpu, gpu, other, cpu, gpu];
        let times = || rates.iter().map(|rate| Arc::new(*rate) as Arc<dyn TimeModel>).collect();
        let pools = setup.pages.map(KvPool::new);
        let planner = |model: usize| {
            Planner::new(PlannerParts {
                model: ModelId(model),
                graph: Arc::clone(&graphs[model]),
                devices: infos.clone(),
                cost: Arc::new(Modelled { devices: times(), sync: Duration::ZERO, copy_rate: 1e9 }),
                strategy: Arc::clone(&setup.strategies[model]),
                chunk_rows: setup.chunk_rows,
            })
        };
        let kv = |model: usize| KvPages {
            pool: pools[model].clone(),
            states: if model == 0 { states.clone() } else { KvPool::new(0) },
            layout: layout(),
        };
        let (sequences_max, permits) = (setup.sequences_max, setup.permits);
        let mut scheduler = Scheduler::new(SchedulerParts {
            config: SchedulerConfig { context: 128, sequences_max, permits, vocab: VOCAB },
            planner: planner(0),
            kv: kv(0),
            policy: Box::new(Fcfs),
        })
        .expect("routes");
        let (context, vocab) = (setup.context_of_draft, setup.vocab_of_draft);
        let draft = SchedulerModel { planner: planner(1), kv: kv(1), context, vocab };
        assert_eq!(scheduler.add_model(draft), Ok(ModelId(1)));
        let memories = [Memory::default(), Memory::default()];
        if setup.prefixes {
            let cache = PrefixCache::new(PAGE_ROWS, Some(Arc::new(memories[0].clone())));
            scheduler.cache_prefixes(ModelId(0), cache);
        }
        let device = |(info, rate)| device(setup, info, rate, &graphs, &memories);
        let sim = Simulation::new(SimulationParts {
            scheduler,
            devices: infos.iter().zip(&rates).map(device).collect(),
            graphs: graphs.to_vec(),
            slots: SlotPool::default(),
            copy_rate: f64::INFINITY,
        });
        let (admission, urgency) = (AdmissionLimit::new(64), Urgency::default());
        Engine { sim, pools, states, admission, urgency }
    }

    /// Sends a request to a model.
    pub(crate) fn send(
        &mut self,
        model: usize,
        at: Nanos,
        ids: &[u32],
        task: Task,
    ) -> flume::Receiver<Traced<StreamEvent>> {
        let (sink, receiver) = ChannelSink::new(EVENTS_MAX);
        let submit = Submit {
            model: ModelId(model),
            ids: ids.to_vec(),
            task,
            client: ClientId::anonymous(),
            urgency: self.urgency,
            prefix: PrefixUse::default(),
            sink,
            admission: self.admission.try_take().expect("a permit"),
            trace: tracing::Span::none(),
        };
        self.sim.send_at(at, SchedulerMessage::Submit(Box::new(submit)));
        receiver
    }

    /// Checks that nothing is left.
    pub(crate) fn assert_empty(&self, what: &str) {
        let scheduler = self.sim.scheduler();
        let cached = [scheduler.cached_pages(), 0];
        for ((pool, of), cached) in self.pools.iter().zip(["target", "draft model"]).zip(cached) {
            let known = pool.free_pages() + cached;
            assert_eq!(known, pool.capacity(), "{what}: pages of the {of} leaked");
        }
        let places = self.states.free_pages() + scheduler.cached_states();
        assert_eq!(places, self.states.capacity(), "{what}: places of states leaked");
        assert_eq!((scheduler.sequences(), scheduler.chunks_in_flight()), (0, 0), "{what}");
        assert_eq!(self.admission.in_use(), 0, "{what}: admission permits leaked");
        assert_eq!(self.sim.left(), 0, "{what}: a run never completed");
    }
}
