//! A device that computes a hash of the whole sequence as it stands in its KV pages: any row
//! that is missing, stale, doubled or out of order changes every token after it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lapwing_actors::RunError;
use lapwing_actors::drive::live::{Live, LiveDevice, LiveParts, LiveRequest};
use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::drive::simulated::{SimulatedDevice, Simulation, SimulationParts};
use lapwing_actors::drive::wait::Waits;
use lapwing_actors::message::{
    FinishReason, Generate, Posted, SchedulerMessage, StreamEvent, Submit, Task,
};
use lapwing_actors::plan::cost::Modelled;
use lapwing_actors::plan::planner::{Planner, PlannerParts};
use lapwing_actors::plan::strategy::{CpuOnly, LayerSplit, Strategy};
use lapwing_actors::plan::time::{FixedRate, TimeModel};
use lapwing_actors::policy::Fcfs;
use lapwing_actors::sample::{Sampler, SamplingParams};
use lapwing_actors::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use lapwing_actors::sequence::Door;
use lapwing_kernels::device::{
    Device, DeviceError, DeviceInfo, DeviceKind, SlotPool, Tensor, Work,
};
use lapwing_kernels::graph::{Graph, NewNode, ValueId, WeightSpec};
use lapwing_kernels::kv::{KvLayout, KvPool, PageId};
use lapwing_kernels::op::Op;
use lapwing_kernels::quant::DType;
use lapwing_traces::{Nanos, OsClock, Recorder, RecorderConfig};

pub const VOCAB: usize = 97;
pub const PAGE_ROWS: usize = 4;
/// Token that ends a text.
pub const STOP: u32 = 96;

/// A graph of `layers` layers; only its shape matters to the oracle.
pub fn graph(layers: usize) -> Graph {
    let mut graph = Graph::default();
    let table = graph.add_weight(WeightSpec {
        name: "table".to_owned(),
        rows: VOCAB,
        cols: 1,
        dtype: DType::F32,
    });
    let mut x = graph.push(node(Op::Embed { table, scale: 1.0 }, &[], None));
    for layer in 0..layers {
        x = graph.push(node(Op::SoftCap { cap: 1.0 }, &[x], Some(layer)));
    }
    graph.push(NewNode { width: VOCAB, ..node(Op::SelectRows, &[x], None) });
    graph
}

fn node(op: Op, inputs: &[ValueId], layer: Option<usize>) -> NewNode<'_> {
    NewNode { op, inputs, width: 1, layer, role: "oracle" }
}

pub fn layout() -> KvLayout {
    KvLayout { layers: 1, kv_heads: 1, head_dim: 2, page_rows: PAGE_ROWS }
}

fn mix(hash: u64, id: u32) -> u64 {
    (hash ^ u64::from(id)).wrapping_mul(0x0100_0000_01b3).rotate_left(17)
}

/// The token that follows `ids`.
pub fn next_token(ids: &[u32]) -> u32 {
    (ids.iter().fold(0xcbf2_9ce4_8422_2325, |h, id| mix(h, *id)) % VOCAB as u64) as u32
}

/// The tokens that follow a prompt, and why they end.
pub fn foretell(prompt: &[u32], tokens_max: usize) -> (Vec<u32>, FinishReason) {
    let mut ids = prompt.to_vec();
    for _ in 0..tokens_max {
        let next = next_token(&ids);
        ids.push(next);
        if next == STOP {
            return (ids.split_off(prompt.len()), FinishReason::Stop);
        }
    }
    (ids.split_off(prompt.len()), FinishReason::Length)
}

/// What a device does on its n-th stage.
pub type Fault = Arc<dyn Fn(usize) -> Option<DeviceError> + Send + Sync>;

pub struct Oracle {
    name: String,
    graph: Arc<Graph>,
    rows: HashMap<(PageId, usize), u32>,
    pub rows_run: Arc<AtomicUsize>,
    pub stages_run: Arc<AtomicUsize>,
    fault: Fault,
}

impl Oracle {
    pub fn new(name: &str, graph: &Arc<Graph>, fault: Fault) -> Oracle {
        Oracle {
            name: name.to_owned(),
            graph: Arc::clone(graph),
            rows: HashMap::new(),
            rows_run: Arc::new(AtomicUsize::new(0)),
            stages_run: Arc::new(AtomicUsize::new(0)),
            fault,
        }
    }
}

impl Device for Oracle {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, work: Work<'_>) -> Result<(), DeviceError> {
        let stage = self.stages_run.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(error) = (self.fault)(stage) {
            return Err(error);
        }
        let Work { nodes, batch, inputs, outputs, observer, .. } = work;
        nodes.clone().for_each(|node| observer.node_done(node));
        self.rows_run.fetch_add(batch.rows(), Ordering::Relaxed);
        for value in self.graph.live_in(nodes.clone()) {
            let tensor = inputs.get(value).expect("a value from the stage before");
            assert_eq!(tensor.rows(), batch.rows(), "a value has a row per token");
        }
        for span in &batch.spans {
            for row in span.rows.clone() {
                let at = batch.positions[row] as usize;
                let slot = (span.pages[at / PAGE_ROWS], at % PAGE_ROWS);
                self.rows.insert(slot, batch.ids[row]);
            }
        }
        if nodes.end < self.graph.nodes().len() {
            for value in self.graph.writes(nodes) {
                outputs.put(value, Tensor::new(1, vec![0.0; batch.rows()]));
            }
            return Ok(());
        }
        let mut data = vec![0.0; batch.selected.len() * VOCAB];
        for (logits, row) in data.chunks_exact_mut(VOCAB).zip(&batch.selected) {
            let span = batch.spans.iter().find(|s| s.rows.contains(row)).expect("an owner");
            let ids: Vec<u32> = (0..=batch.positions[*row] as usize)
                .map(|at| {
                    let slot = (span.pages[at / PAGE_ROWS], at % PAGE_ROWS);
                    // A lost sequence may run over rows that never came; any other would
                    // get wrong tokens from this.
                    self.rows.get(&slot).copied().unwrap_or(0)
                })
                .collect();
            logits[next_token(&ids) as usize] = 10.0;
        }
        outputs.put(self.graph.output(), Tensor::new(VOCAB, data));
        Ok(())
    }
}

/// How an engine of oracles is built.
#[derive(Clone)]
pub struct Setup {
    pub config: SchedulerConfig,
    pub chunk_rows: usize,
    pub devices: usize,
    pub pages: u32,
    pub fault: Fault,
    /// Of all devices, or of each.
    pub rates: Vec<FixedRate>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            config: SchedulerConfig { context: 256, sequences_max: 8, permits: 2, vocab: VOCAB },
            chunk_rows: 16,
            devices: 1,
            pages: 512,
            fault: Arc::new(|_| None),
            rates: vec![FixedRate {
                per_stage: Duration::from_micros(100),
                per_row: Duration::from_micros(10),
            }],
        }
    }
}

pub struct Parts {
    pub scheduler: Scheduler,
    pub devices: Vec<Oracle>,
    pub graph: Arc<Graph>,
    pub pool: KvPool,
}

impl Setup {
    pub fn parts(&self) -> Parts {
        let graph = Arc::new(graph(4));
        let names: Vec<String> = (0..self.devices).map(|d| format!("oracle-{d}")).collect();
        let strategy: Arc<dyn Strategy> =
            if self.devices == 1 { Arc::new(CpuOnly) } else { Arc::new(LayerSplit) };
        let info = |name: &String| DeviceInfo {
            name: name.clone(),
            kind: DeviceKind::Cpu,
            sizes: Vec::new(),
        };
        let devices = self.rates.iter().cycle().take(self.devices);
        let cost = Modelled {
            devices: devices.map(|rate| Arc::new(*rate) as Arc<dyn TimeModel>).collect(),
            sync: Duration::ZERO,
            copy_rate: f64::INFINITY,
        };
        let planner = Planner::new(PlannerParts {
            graph: Arc::clone(&graph),
            devices: names.iter().map(info).collect(),
            cost: Arc::new(cost),
            strategy,
            chunk_rows: self.chunk_rows,
        });
        let pool = KvPool::new(self.pages);
        let scheduler = Scheduler::new(SchedulerParts {
            config: self.config,
            planner,
            kv: KvPages { pool: pool.clone(), layout: layout() },
            policy: Box::new(Fcfs),
        })
        .expect("a route");
        let fault = &self.fault;
        let devices = names.iter().map(|n| Oracle::new(n, &graph, Arc::clone(fault))).collect();
        Parts { scheduler, devices, graph, pool }
    }
}

/// An engine in virtual time, with the books that must balance.
pub struct World {
    pub sim: Simulation,
    pub pool: KvPool,
    pub door: Door,
    pub rows_run: Vec<Arc<AtomicUsize>>,
    pub stages_run: Vec<Arc<AtomicUsize>>,
}

pub struct Stream {
    pub receiver: Option<flume::Receiver<Posted<StreamEvent>>>,
    pub tokens: Vec<u32>,
    pub scores: Vec<f32>,
    pub end: Option<Result<FinishReason, RunError>>,
}

impl World {
    pub fn new(setup: &Setup) -> World {
        let Parts { scheduler, devices, graph, pool } = setup.parts();
        let rows_run = devices.iter().map(|d| Arc::clone(&d.rows_run)).collect();
        let stages_run = devices.iter().map(|d| Arc::clone(&d.stages_run)).collect();
        let devices = devices
            .into_iter()
            .zip(setup.rates.iter().cycle())
            .map(|(device, rate)| SimulatedDevice {
                device: Box::new(device),
                time: Arc::new(*rate),
            })
            .collect();
        World {
            sim: Simulation::new(SimulationParts {
                scheduler,
                devices,
                graph,
                slots: SlotPool::default(),
                copy_rate: f64::INFINITY,
            }),
            pool,
            door: Door::new(64),
            rows_run,
            stages_run,
        }
    }

    pub fn submit(&mut self, at: Nanos, ids: &[u32], task: Task) -> Stream {
        self.submit_traced(at, ids, task, false)
    }

    /// As [`submit`](World::submit), for a request that may ask to be recorded.
    pub fn submit_traced(&mut self, at: Nanos, ids: &[u32], task: Task, traced: bool) -> Stream {
        let (sink, receiver) = ChannelSink::new(1000);
        let ticket = self.door.try_take().expect("a ticket");
        let trace = tracing::Span::none();
        let submit = Submit { ids: ids.to_vec(), task, sink, ticket, traced, trace };
        self.sim.send_at(at, SchedulerMessage::Submit(Box::new(submit)));
        Stream { receiver: Some(receiver), tokens: Vec::new(), scores: Vec::new(), end: None }
    }

    /// Asserts that nothing is left in the engine.
    pub fn assert_empty(&self) {
        assert_eq!(self.pool.free_pages(), self.pool.capacity(), "pages leaked");
        assert_eq!(self.door.in_use(), 0, "tickets leaked");
        assert_eq!(self.sim.scheduler().sequences(), 0, "sequences left");
        assert_eq!(self.sim.scheduler().chunks_in_flight(), 0, "permits leaked");
    }
}

impl Stream {
    /// Reads what has arrived.
    pub fn drain(&mut self) {
        let Some(receiver) = &self.receiver else { return };
        for Posted { message: event, .. } in receiver.try_iter() {
            assert!(self.end.is_none(), "an event after the end: {event:?}");
            match event {
                StreamEvent::Token(token) => self.tokens.push(token.id),
                StreamEvent::Scores(scores) => self.scores.extend(scores),
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
    }))
}

/// A request for greedy generation.
pub fn request(prompt: &[u32], tokens_max: usize) -> LiveRequest {
    LiveRequest {
        ids: prompt.to_vec(),
        task: generate(prompt, tokens_max),
        events: tokens_max,
        traced: false,
    }
}

/// A live engine of oracles that tells `recorder`.
pub fn live(setup: &Setup, requests_max: usize, recorder: &Recorder) -> (Live, KvPool) {
    start(setup, requests_max, recorder, |_| None, Waits::for_devices(setup.devices))
}

/// A live engine of oracles that are held to the setup's rates, and wait like that.
pub fn throttled(setup: &Setup, recorder: &Recorder, waits: Waits) -> (Live, KvPool) {
    let rate = |device: usize| setup.rates[device % setup.rates.len()];
    start(setup, 4, recorder, |device| Some(Arc::new(rate(device))), waits)
}

fn start(
    setup: &Setup,
    requests_max: usize,
    recorder: &Recorder,
    time: impl Fn(usize) -> Option<Arc<dyn TimeModel>>,
    waits: Waits,
) -> (Live, KvPool) {
    let Parts { scheduler, devices, graph, pool } = setup.parts();
    let device = |(at, device)| LiveDevice { device: Box::new(device), time: time(at) };
    let live = Live::start(LiveParts {
        scheduler,
        devices: devices.into_iter().enumerate().map(device).collect(),
        graph,
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
