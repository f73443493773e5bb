//! Engines of oracles, live and in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lapwing_actors::RunError;
use lapwing_actors::draft::{DraftTree, Drafter, Drafts};
use lapwing_actors::drive::live::{Live, LiveDevice, LiveParts, LiveRequest};
use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::drive::simulated::{SimulatedDevice, Simulation, SimulationParts};
use lapwing_actors::drive::wait::Waits;
use lapwing_actors::message::{
    FinishReason, Generate, SchedulerMessage, StreamEvent, Submit, Task, TraceContext, Traced,
};
use lapwing_actors::policy::{ClientId, PolicyChoice, Urgency};
use lapwing_actors::prefix::{PrefixCache, PrefixUse};
use lapwing_actors::sample::{Sampler, SamplingParams, Scored};
use lapwing_actors::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use lapwing_actors::sequence::AdmissionLimit;
use lapwing_kernels::device::{
    Blocking, Device, DeviceInfo, DeviceKind, MemoryDomain, ModelId, SlotPool,
};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::KvPool;
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::{CpuOnly, LayerSplit, Strategy};
use lapwing_plan::time::{FixedRate, TimeModel};
use lapwing_traces::{Nanos, OsClock, Recorder, RecorderConfig};

use crate::late::{Late, LateThread};
pub use crate::oracle::{
    Fault, Memory, Oracle, PAGE_ROWS, SIZES, STOP, VOCAB, foretell, graph, layout, next_token,
};

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
        }
    }
}

pub struct Parts {
    pub scheduler: Scheduler,
    pub devices: Vec<Box<dyn Device>>,
    pub graph: Arc<Graph>,
    pub pool: KvPool,
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
        let graph = Arc::new(graph(self.layers));
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
        let mut scheduler = Scheduler::new(SchedulerParts {
            config: self.config,
            planner,
            kv: KvPages { pool: pool.clone(), layout: layout() },
            policy: self.policy.make().expect("a policy"),
        })
        .expect("a route");
        scheduler.set_token_gap(self.token_gap);
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
        Parts { scheduler, devices, graph, pool, rows_run, stages_run, buffers }
    }

    /// Time model of each device.
    fn times(&self) -> Vec<Arc<dyn TimeModel>> {
        let rates = self.rates.iter().cycle().take(self.devices);
        rates
            .map(|rate| self.time.clone().unwrap_or_else(|| Arc::new(*rate) as Arc<dyn TimeModel>))
            .collect()
    }
}

/// An engine in virtual time, with the resources that must all return.
pub struct World {
    pub sim: Simulation,
    pub pool: KvPool,
    pub admission: AdmissionLimit,
    pub rows_run: Vec<Arc<AtomicUsize>>,
    pub stages_run: Vec<Arc<AtomicUsize>>,
    /// Buffers in the memories of late devices.
    pub buffers: Arc<AtomicUsize>,
    /// Layers of the graph.
    pub layers: usize,
    /// Urgency of the next requests.
    pub urgency: Urgency,
}

pub struct Stream {
    pub receiver: Option<flume::Receiver<Traced<StreamEvent>>>,
    pub tokens: Vec<u32>,
    pub scores: Vec<Scored>,
    pub hidden: Vec<f32>,
    pub end: Option<Result<FinishReason, RunError>>,
}

/// How a request is submitted.
#[derive(Default)]
struct Manner {
    client: ClientId,
    prefix: PrefixUse,
    /// Whether it is marked for recording.
    traced: bool,
}

impl World {
    pub fn new(setup: &Setup) -> World {
        let Parts { scheduler, devices, graph, pool, rows_run, stages_run, buffers } =
            setup.parts();
        let devices = devices
            .into_iter()
            .zip(setup.times())
            .map(|(device, time)| SimulatedDevice { device, time })
            .collect();
        World {
            sim: Simulation::new(SimulationParts {
                scheduler,
                devices,
                graphs: vec![graph],
                slots: SlotPool::default(),
                copy_rate: f64::INFINITY,
            }),
            pool,
            admission: AdmissionLimit::new(64),
            rows_run,
            stages_run,
            buffers,
            layers: setup.layers,
            urgency: Urgency::default(),
        }
    }

    pub fn submit(&mut self, at: Nanos, ids: &[u32], task: Task) -> Stream {
        self.submit_traced(at, ids, task, false)
    }

    /// As [`submit`](World::submit), for a request of a client.
    pub fn submit_of(
        &mut self,
        client: impl Into<ClientId>,
        at: Nanos,
        ids: &[u32],
        task: Task,
    ) -> Stream {
        let manner = Manner { client: client.into(), ..Manner::default() };
        self.send(at, ids, task, manner)
    }

    /// As [`submit`](World::submit), for a request that uses the prefix cache in a certain way.
    pub fn submit_with(&mut self, prefix: PrefixUse, ids: &[u32], task: Task) -> Stream {
        self.send(self.sim.now(), ids, task, Manner { prefix, ..Manner::default() })
    }

    /// As [`submit`](World::submit), for a request that may be marked for recording.
    pub fn submit_traced(&mut self, at: Nanos, ids: &[u32], task: Task, traced: bool) -> Stream {
        self.send(at, ids, task, Manner { traced, ..Manner::default() })
    }

    fn send(&mut self, at: Nanos, ids: &[u32], task: Task, manner: Manner) -> Stream {
        let Manner { client, prefix, traced } = manner;
        let (sink, receiver) = ChannelSink::new(1000);
        let admission = self.admission.try_take().expect("a permit");
        let trace = tracing::Span::none();
        let (model, ids, urgency) = (ModelId::default(), ids.to_vec(), self.urgency);
        let submit = Submit { model, client, urgency, prefix, ids, task, sink, admission, trace };
        let submit = SchedulerMessage::Submit(Box::new(submit));
        self.sim.send_at(at, Traced::new(submit, TraceContext::of_request(traced)));
        let (tokens, scores, hidden) = (Vec::new(), Vec::new(), Vec::new());
        Stream { receiver: Some(receiver), tokens, scores, hidden, end: None }
    }

    /// Asserts that nothing is left in the engine.
    pub fn assert_empty(&self) {
        let pages = self.pool.free_pages() + self.sim.scheduler().cached_pages();
        assert_eq!(pages, self.pool.capacity(), "pages leaked");
        assert_eq!(self.sim.scheduler().kv_pages_in_use(), 0, "pages leased");
        assert_eq!(self.admission.in_use(), 0, "admission permits leaked");
        assert_eq!(self.sim.scheduler().sequences(), 0, "sequences left");
        assert_eq!(self.sim.scheduler().chunks_in_flight(), 0, "permits leaked");
        assert_eq!(self.buffers.load(Ordering::Relaxed), 0, "device memory leaked");
        assert_eq!(self.sim.left(), 0, "a run never completed");
    }
}

impl Stream {
    /// Reads what has arrived.
    pub fn drain(&mut self) {
        let Some(receiver) = &self.receiver else { return };
        for Traced { message: event, .. } in receiver.try_iter() {
            assert!(self.end.is_none(), "an event after the end: {event:?}");
            match event {
                StreamEvent::Token(token) => self.tokens.push(token.id),
                StreamEvent::Scores(scores) => self.scores.extend(scores),
                StreamEvent::Hidden(rows) => self.hidden.extend(rows),
                StreamEvent::Prompt(_) => {}
                StreamEvent::Finished(finished) => self.end = Some(Ok(finished.reason)),
                StreamEvent::Failed(error) => self.end = Some(Err(error)),
            }
        }
    }
}

/// Greedy generation that ends at [`STOP`].
pub fn generate(prompt: &[u32], tokens_max: usize) -> Task {
    Task::Generate(Box::new(Generate {
        sampler: Sampler::new(SamplingParams::greedy(), prompt),
        stop_ids: [STOP].into(),
        tokens_max,
        drafts: None,
    }))
}

/// As [`generate`], with a drafter that knows the next tokens and is wrong at random: the output must be
/// the same.
pub fn generate_drafted(prompt: &[u32], tokens_max: usize, seed: u64) -> Task {
    let Task::Generate(mut generate) = generate(prompt, tokens_max) else { unreachable!() };
    let guess = Box::new(Guess(seed | 1));
    // The control of the length declines most drafts that are wrong so often.
    let drafts = if seed.is_multiple_of(4) {
        Drafts::new(guess)
    } else {
        Drafts::new(guess).always(usize::MAX)
    };
    generate.drafts = Some(Box::new(drafts));
    Task::Generate(generate)
}

#[derive(Debug)]
struct Guess(u64);

impl Drafter for Guess {
    fn draft(&mut self, ids: &[u32], most: usize) -> Vec<u32> {
        let mut below = |limit: u64| {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (self.0 >> 33) % limit
        };
        let mut ids = ids.to_vec();
        let known = ids.len();
        for _ in 0..below(5).min(most as u64) {
            let right = next_token(&ids);
            // Now and then another token, or one outside the vocabulary, which ends the draft.
            ids.push(if below(4) > 0 { right } else { below(VOCAB as u64 + 3) as u32 });
        }
        ids.split_off(known)
    }

    /// Sometimes up to three drafts, each after some tokens of the one before.
    fn draft_tree(&mut self, ids: &[u32], most: usize) -> DraftTree {
        let mut path = self.draft(ids, most);
        let mut tree = DraftTree::from(path.clone());
        for _ in 0..self.0 % 3 {
            path.truncate((self.0 >> 40) as usize % (path.len() + 1));
            let longer = [ids, &path].concat();
            path.extend(self.draft(&longer, most - path.len()));
            tree.add(&path);
        }
        tree
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
    }
}

/// A live engine of oracles that records into `recorder`.
pub fn live(setup: &Setup, requests_max: usize, recorder: &Recorder) -> (Live, KvPool) {
    start(setup, requests_max, recorder, |_| None, Waits::for_devices(setup.devices))
}

/// A live engine of oracles that are throttled to the setup's rates, with these wait modes.
pub fn throttled(setup: &Setup, recorder: &Recorder, waits: Waits) -> (Live, KvPool) {
    let rate = |device: usize| setup.rates[device % setup.rates.len()];
    start(setup, 4, recorder, |device| Some(Arc::new(rate(device))), waits)
}

/// A live engine whose late devices run at their own pace, and whose others are throttled to the setup's model.
pub fn paced(setup: &Setup, recorder: &Recorder) -> Live {
    let is_late = |device: usize| setup.late.get(device).is_some_and(|depth| *depth > 0);
    let time = |device| setup.time.clone().filter(|_| !is_late(device));
    start(setup, 4, recorder, time, Waits::for_devices(setup.devices)).0
}

/// A live engine of oracles that are throttled to a model other than the planner's.
pub fn held_to(setup: &Setup, time: &Arc<dyn TimeModel>) -> Live {
    let waits = Waits::for_devices(setup.devices);
    start(setup, 4, &recorder(), |_| Some(Arc::clone(time)), waits).0
}

fn start(
    setup: &Setup,
    requests_max: usize,
    recorder: &Recorder,
    time: impl Fn(usize) -> Option<Arc<dyn TimeModel>>,
    waits: Waits,
) -> (Live, KvPool) {
    let late = |info, oracle, live: (&Arc<AtomicUsize>, usize)| -> Box<dyn Device> {
        Box::new(LateThread::new(info, oracle, live.0))
    };
    let Parts { scheduler, devices, graph, pool, .. } = setup.parts_with(late);
    let device = |(at, device)| LiveDevice { device, time: time(at), cores: None };
    let live = Live::start(LiveParts {
        scheduler,
        devices: devices.into_iter().enumerate().map(device).collect(),
        graphs: vec![graph],
        slots: SlotPool::default(),
        requests_max,
        permits: setup.config.permits,
        waits,
        recorder: recorder.clone(),
    });
    (live.expect("threads"), pool)
}

/// A recorder of real time that is off.
pub fn recorder() -> Recorder {
    Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default())
}

/// A prompt of `len` tokens that differs with `seed`.
pub fn prompt(seed: u32, len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| (seed.wrapping_mul(31) + i * 7 + i * i) % (VOCAB as u32 - 1)).collect()
}
