//! Engines of oracles, live and in virtual time.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use lapwing_actors::drive::live::LiveRequest;
use lapwing_actors::policy::{ClientId, PolicyChoice, Urgency};
use lapwing_actors::prefix::{PrefixCache, PrefixUse};
use lapwing_actors::scheduler::{KvPages, Reserve, Scheduler, SchedulerConfig, SchedulerParts};
use lapwing_kernels::device::{Blocking, Device, DeviceInfo, DeviceKind, MemoryDomain, ModelId};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::KvPool;
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::{CpuOnly, LayerSplit, Strategy};
use lapwing_plan::time::{FixedRate, TimeModel};
use lapwing_traces::{OsClock, Recorder, RecorderConfig};

use crate::late::Late;
pub use crate::oracle::{
    Fault, Form, Memory, Oracle, PAGE_ROWS, SIZES, VOCAB, foretell, graph_of, layout, next_token,
};

mod generated;
mod live;
mod world;

pub use generated::{generate, generate_drafted};
pub use live::{held_to, live, paced, throttled};
pub use world::{Stream, World};

/// How an engine of oracles is built.
#[derive(Clone)]
pub struct Setup {
    pub config: SchedulerConfig,
    pub chunk_rows: usize,
    pub devices: usize,
    /// Kind of each device; a CPU by default.
    pub kinds: Vec<DeviceKind>,
    /// Graph budget of an NPU, and which of its preparations fail.
    pub graphs: (usize, Option<usize>),
    pub strategy: Option<Arc<dyn Strategy>>,
    /// For chunks whose graphs are not ready; by default they wait.
    pub meanwhile: Option<Arc<dyn Strategy>>,
    pub policy: PolicyChoice,
    pub layers: usize,
    /// Whether layers keep a state of a sequence.
    pub states: bool,
    /// Places of states.
    pub state_places: u32,
    pub pages: u32,
    pub fault: Fault,
    /// Rates of all devices, or of each.
    pub rates: Vec<FixedRate>,
    /// Time model of all devices, in place of the rates.
    pub time: Option<Arc<dyn TimeModel>>,
    /// Queue depth of each late device, which has its own memory; 0 is a device that computes on the
    /// worker's thread. By default no device is late.
    pub late: Vec<usize>,
    /// Whether requests share the pages of prefixes; and which copies of pages then fail.
    pub prefixes: Option<Option<usize>>,
    /// Target of streams that name none.
    pub token_gap: Option<Duration>,
    /// Room that a request finds when it is admitted.
    pub reserve: Reserve,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            config: SchedulerConfig { context: 256, sequences_max: 8, permits: 2, vocab: VOCAB },
            chunk_rows: 16,
            devices: 1,
            kinds: Vec::new(),
            graphs: (64, None),
            strategy: None,
            meanwhile: None,
            policy: PolicyChoice::default(),
            layers: 4,
            states: false,
            state_places: 24,
            pages: 512,
            fault: Arc::new(|_| None),
            rates: vec![FixedRate {
                per_stage: Duration::from_micros(100),
                per_row: Duration::from_micros(10),
            }],
            time: None,
            late: Vec::new(),
            prefixes: None,
            token_gap: None,
            reserve: Reserve::Prompt,
        }
    }
}

pub struct Parts {
    pub scheduler: Scheduler,
    pub devices: Vec<Box<dyn Device>>,
    pub graph: Arc<Graph>,
    pub pool: KvPool,
    /// Places of states.
    pub states: KvPool,
    pub rows_run: Vec<Arc<AtomicUsize>>,
    pub stages_run: Vec<Arc<AtomicUsize>>,
    /// Buffers in the memories of late devices.
    pub buffers: Arc<AtomicUsize>,
}

impl Setup {
    pub fn parts(&self) -> Parts {
        self.parts_with(|info, oracle, live| {
            let seed = live.1 as u64 * 77 + info.depth as u64;
            Box::new(Late::new(info, oracle, live.0, seed))
        })
    }

    /// As [`parts`](Setup::parts), with late devices made by `late` from their oracle, the count of
    /// their buffers, and their number.
    fn parts_with(
        &self,
        late: impl Fn(DeviceInfo, Oracle, (&Arc<AtomicUsize>, usize)) -> Box<dyn Device>,
    ) -> Parts {
        let graph =
            Arc::new(graph_of(self.layers, Form { states: self.states, ..Form::default() }));
        let infos: Vec<DeviceInfo> = (0..self.devices)
            .map(|d| {
                let kind = self.kinds.get(d).copied().unwrap_or(DeviceKind::Cpu);
                let sizes = if kind == DeviceKind::Npu { SIZES.to_vec() } else { Vec::new() };
                let info = DeviceInfo::new(format!("oracle-{d}"), kind).with_graphs(sizes, None);
                match self.late.get(d) {
                    None | Some(0) => info,
                    Some(depth) => info.with_queue(MemoryDomain::Device(d), *depth),
                }
            })
            .collect();
        let strategy: Arc<dyn Strategy> = match &self.strategy {
            Some(strategy) => Arc::clone(strategy),
            None if self.devices == 1 => Arc::new(CpuOnly),
            None => Arc::new(LayerSplit),
        };
        let cost =
            Modelled { devices: self.times(), sync: Duration::ZERO, copy_rate: f64::INFINITY };
        let planner = Planner::new(PlannerParts {
            model: ModelId::default(),
            graph: Arc::clone(&graph),
            devices: infos.clone(),
            cost: Arc::new(cost),
            strategy,
            chunk_rows: self.chunk_rows,
        });
        let planner = match &self.meanwhile {
            Some(meanwhile) => planner.with_meanwhile(Arc::clone(meanwhile)),
            None => planner,
        };
        let pool = KvPool::new(self.pages);
        let states = KvPool::new(self.state_places);
        let mut scheduler = Scheduler::new(SchedulerParts {
            config: self.config,
            planner,
            kv: KvPages { pool: pool.clone(), states: states.clone(), layout: layout() },
            policy: self.policy.make().expect("a policy"),
        })
        .expect("a route");
        scheduler.set_token_gap(self.token_gap);
        scheduler.set_reserve(self.reserve);
        let mut memory = Memory::default();
        if let Some(failing_copies) = self.prefixes {
            memory.failing_copies = failing_copies;
            let cache = PrefixCache::new(PAGE_ROWS, Some(Arc::new(memory.clone())));
            scheduler.cache_prefixes(ModelId::default(), cache);
        }
        let (mut rows_run, mut stages_run, buffers) = (Vec::new(), Vec::new(), Arc::default());
        let mut device = |(number, info): (usize, DeviceInfo)| -> Box<dyn Device> {
            let (budget, failing) = self.graphs;
            let oracle = Oracle::new(info.clone(), &graph, &memory, Arc::clone(&self.fault));
            rows_run.push(Arc::clone(&oracle.rows_run));
            stages_run.push(Arc::clone(&oracle.stages_run));
            let oracle = oracle.with_graphs(budget, failing);
            match info.memory {
                MemoryDomain::Host => Box::new(Blocking::new(info, oracle)),
                MemoryDomain::Device(_) => late(info, oracle, (&buffers, number)),
            }
        };
        let devices = infos.into_iter().enumerate().map(&mut device).collect();
        Parts { scheduler, devices, graph, pool, states, rows_run, stages_run, buffers }
    }

    /// Time model of each device.
    fn times(&self) -> Vec<Arc<dyn TimeModel>> {
        let rates = self.rates.iter().cycle().take(self.devices);
        rates
            .map(|rate| self.time.clone().unwrap_or_else(|| Arc::new(*rate) as Arc<dyn TimeModel>))
            .collect()
    }
}

/// A request for greedy generation.
pub fn request(prompt: &[u32], tokens_max: usize) -> LiveRequest {
    LiveRequest {
        prompt_progress: false,
        ids: prompt.to_vec(),
        task: generate(prompt, tokens_max),
        client: ClientId::anonymous(),
        urgency: Urgency::default(),
        prefix: PrefixUse::default(),
        events: tokens_max,
        model: ModelId::default(),
        traced: false,
        trace: tracing::Span::none(),
    }
}

/// A recorder of real time that is off.
pub fn recorder() -> Recorder {
    Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default())
}

/// A prompt of `len` tokens that differs with `seed`.
pub fn prompt(seed: u32, len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| (seed.wrapping_mul(31) + i * 7 + i * i) % (VOCAB as u32 - 1)).collect()
}
