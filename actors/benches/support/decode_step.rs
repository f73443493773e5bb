//! The scheduler's and workers' part of a decode step, without computing.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::decide::decide;
use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::message::{Delivery, Generate, SchedulerMessage, Submit, Task, Traced};
use lapwing_actors::policy::{ClientId, Fcfs, Urgency};
use lapwing_actors::prefix::PrefixUse;
use lapwing_actors::sample::{Sampler, SamplingParams};
use lapwing_actors::scheduler::{
    KvPages, Scheduler, SchedulerConfig, SchedulerEffect, SchedulerParts,
};
use lapwing_actors::sequence::AdmissionLimit;
use lapwing_actors::worker::{Worker, WorkerEffect};
use lapwing_kernels::device::{DeviceInfo, DeviceKind, ModelId, SlotPool, Tensor, TensorSet};
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::kv::{KvDtype, KvLayout, KvPool};
use lapwing_kernels::op::Op;
use lapwing_kernels::quant::DType;
use lapwing_plan::DeviceId;
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::{CpuOnly, LayerSplit, Strategy};
use lapwing_plan::time::{FixedRate, TimeModel};
use lapwing_traces::{Clock, Nanos, OsClock};

const VOCAB: usize = 64;
const TOKENS: usize = 4000;
const PROMPT: usize = 8;
/// A decode step of the smallest model that is tested here: 135 M weights of 8.5 bits, read once at
/// 50 GB/s, which is faster than a laptop's memory, in ns.
const STEP_NS: f64 = 135e6 * 8.5 / 8.0 / 50.0;

/// An engine without threads and devices.
struct Engine {
    scheduler: Scheduler,
    workers: Vec<Worker>,
    graph: Arc<Graph>,
    admission: AdmissionLimit,
    messages: VecDeque<SchedulerMessage>,
    /// Chunks that left the scheduler.
    chunks: usize,
}

impl Engine {
    fn new(layers: usize, devices: usize) -> Result<Engine, Box<dyn Error>> {
        let graph = Arc::new(graph(layers));
        let strategy: Arc<dyn Strategy> =
            if devices == 1 { Arc::new(CpuOnly) } else { Arc::new(LayerSplit) };
        let names: Vec<String> = (0..devices).map(|device| format!("device-{device}")).collect();
        let info = |name: &String| DeviceInfo::new(&**name, DeviceKind::Cpu);
        let rate = FixedRate { per_stage: Duration::from_micros(1), per_row: Duration::ZERO };
        let cost = Modelled {
            devices: names.iter().map(|_| Arc::new(rate) as Arc<dyn TimeModel>).collect(),
            sync: Duration::ZERO,
            copy_rate: f64::INFINITY,
        };
        let planner = Planner::new(PlannerParts {
            model: ModelId::default(),
            graph: Arc::clone(&graph),
            devices: names.iter().map(info).collect(),
            cost: Arc::new(cost),
            strategy,
            chunk_rows: 256,
        });
        let layout =
            KvLayout { layers: 1, kv_heads: 1, head_dim: 2, page_rows: 16, dtype: KvDtype::F16 };
        let context = TOKENS + PROMPT;
        let scheduler = Scheduler::new(SchedulerParts {
            config: SchedulerConfig { context, sequences_max: 8, permits: 2, vocab: VOCAB },
            planner,
            kv: KvPages { pool: KvPool::new(8 * context as u32 / 16 + 64), layout },
            policy: Box::new(Fcfs),
        })?;
        let worker = |(at, name)| Worker::new(DeviceId(at), name, 1);
        let workers = names.into_iter().enumerate().map(worker).collect();
        let (messages, chunks, admission) = (VecDeque::new(), 0, AdmissionLimit::new(8));
        Ok(Engine { scheduler, workers, graph, admission, messages, chunks })
    }

    /// Generates for `sequences` requests at once; ns per chunk.
    fn run(&mut self, sequences: usize) -> Result<f64, Box<dyn Error>> {
        let mut streams = Vec::new();
        for _ in 0..sequences {
            let (sink, stream) = ChannelSink::new(TOKENS + 2);
            let ids = vec![1; PROMPT];
            let generate = Generate {
                sampler: Sampler::new(SamplingParams::greedy(), &ids),
                stop_ids: [].into(),
                tokens_max: TOKENS,
                drafts: None,
            };
            let (task, trace) = (Task::Generate(Box::new(generate)), tracing::Span::none());
            let admission = self.admission.try_take().ok_or("no permit")?;
            let model = ModelId::default();
            let (client, prefix) = (ClientId::anonymous(), PrefixUse::Off);
            let urgency = Urgency::default();
            let submit =
                Submit { model, client, urgency, prefix, ids, task, sink, admission, trace };
            self.messages.push_back(SchedulerMessage::Submit(Box::new(submit)));
            streams.push(stream);
        }
        let clock = OsClock::start();
        self.chunks = 0;
        while let Some(message) = self.messages.pop_front() {
            for effect in self.scheduler.on(Traced::untraced(message), Nanos(0)) {
                if let SchedulerEffect::Send(device, delivery, _) = effect {
                    self.chunks += 1;
                    self.work(device.0, delivery);
                } else if let SchedulerEffect::Emit(emission) = effect {
                    let emission = emission.message;
                    emission.sink.send(Traced::untraced(emission.event));
                }
            }
        }
        let ns = clock.now().0 as f64;
        let whole = streams.iter().all(|stream| stream.len() == TOKENS + 1);
        if !whole {
            let lengths: Vec<usize> = streams.iter().map(|stream| stream.len()).collect();
            return Err(format!("streams of {lengths:?} events instead of {}", TOKENS + 1).into());
        }
        Ok(ns / self.chunks as f64)
    }

    fn work(&mut self, device: usize, delivery: Traced<Delivery>) {
        let first = self.workers[device].on_delivery(delivery);
        let mut effects: VecDeque<_> = first.into_iter().map(|effect| (device, effect)).collect();
        while let Some((device, effect)) = effects.pop_front() {
            let further = match effect {
                WorkerEffect::Submit(delivery) => {
                    let outputs = self.outputs(&delivery);
                    self.workers[device].on_done(delivery, Ok(outputs))
                }
                WorkerEffect::Decide(mut chunk) => {
                    let decided = decide(&mut chunk, &SlotPool::default());
                    self.workers[device].on_decided(chunk, decided)
                }
                WorkerEffect::Send(to, delivery) => {
                    let further = self.workers[to.0].on_delivery(delivery);
                    effects.extend(further.into_iter().map(|effect| (to.0, effect)));
                    continue;
                }
                WorkerEffect::Emit(emission) => {
                    let emission = emission.message;
                    emission.sink.send(Traced::untraced(emission.event));
                    continue;
                }
                WorkerEffect::Report(progress) => {
                    self.messages.push_back(SchedulerMessage::Progress(progress.message));
                    continue;
                }
                WorkerEffect::Nudge(to) => {
                    let further = self.workers[to.0].on_nudge();
                    effects.extend(further.into_iter().map(|effect| (to.0, effect)));
                    continue;
                }
                // These plans cut nothing.
                WorkerEffect::Merge(..) => continue,
            };
            effects.extend(further.into_iter().map(|effect| (device, effect)));
        }
    }

    /// The outputs of a stage, without values.
    fn outputs(&self, delivery: &Delivery) -> TensorSet {
        let chunk = delivery.chunk();
        let mut outputs = TensorSet::default();
        for value in chunk.flow().writes.iter() {
            let spec = self.graph.value(*value);
            let rows = delivery.part().part.rows_of(spec, chunk.batch()).len();
            outputs.put(*value, Tensor::new(spec.width, vec![0.0; rows * spec.width]));
        }
        outputs
    }
}

/// Layers of two ops.
fn graph(layers: usize) -> Graph {
    let mut graph = Graph::default();
    let mut weight = |name: &str, rows, cols| {
        graph.add_weight(WeightSpec { name: name.to_owned(), rows, cols, dtype: DType::F32 })
    };
    let (table, gain) = (weight("table", VOCAB, 64), weight("gain", 1, 64));
    let (matrix, head) = (weight("matrix", 64, 64), weight("head", VOCAB, 64));
    let mut push = |op, inputs: &[_], width, layer| {
        graph.push(NewNode { op, inputs, width, layer, role: "op" })
    };
    let mut x = push(Op::Embed { table, scale: 1.0 }, &[], 64, None);
    for layer in 0..layers {
        x = push(Op::RmsNorm { weight: gain, eps: 1e-5 }, &[x], 64, Some(layer));
        x = push(Op::MatMul { weight: matrix, bias: None }, &[x], 64, Some(layer));
    }
    let x = push(Op::SelectRows, &[x], 64, None);
    push(Op::MatMul { weight: head, bias: None }, &[x], VOCAB, None);
    graph
}

/// Prints a decode step's bookkeeping, and returns its largest share of a step. `hop` is what a hop
/// takes in ns.
pub(super) fn share(hop: f64) -> Result<f64, Box<dyn Error>> {
    println!("\nbookkeeping of a decode step, without computing:");
    let mut worst = 0.0_f64;
    for (devices, sequences) in [(1, 1), (1, 8), (2, 1), (3, 8)] {
        let mut engine = Engine::new(30, devices)?;
        let mut runs = Vec::new();
        for _ in 0..5 {
            runs.push(engine.run(sequences)?);
        }
        runs.sort_by(f64::total_cmp);
        let hops = (devices + 1) as f64 * hop;
        let all = runs[2] + hops;
        println!(
            "{devices} devices, {sequences} sequences: {:>6.0} ns, and {hops:>5.0} ns in {} hops: {:.3} % of {:.2} ms",
            runs[2],
            devices + 1,
            100.0 * all / STEP_NS,
            STEP_NS / 1e6,
        );
        worst = worst.max(all);
    }
    Ok(worst / STEP_NS)
}
