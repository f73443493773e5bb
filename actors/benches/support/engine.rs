//! An engine without threads and devices, which computes nothing.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::decide::decide;
use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::message::{
    Delivery, Generate, SchedulerMessage, StreamEvent, Submit, Task, Traced,
};
use lapwing_actors::policy::{ClientId, QueuePolicy, Urgency};
use lapwing_actors::prefix::{PrefixCache, PrefixUse};
use lapwing_actors::sample::{Sampler, SamplingParams};
use lapwing_actors::scheduler::{
    KvPages, Scheduler, SchedulerConfig, SchedulerEffect, SchedulerParts,
};
use lapwing_actors::sequence::AdmissionLimit;
use lapwing_actors::worker::{Worker, WorkerEffect};
use lapwing_kernels::device::{DeviceInfo, DeviceKind, ModelId, SlotPool, Tensor, TensorSet};
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvPool};
use lapwing_kernels::op::Op;
use lapwing_plan::DeviceId;
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::{CpuOnly, LayerSplit, Strategy};
use lapwing_plan::time::{FixedRate, TimeModel};
use lapwing_traces::{Clock, OsClock};

/// Token ids are below this.
pub(crate) const VOCAB: usize = 64;
const PAGE_ROWS: usize = 16;

/// Size of an engine.
pub(crate) struct Size {
    pub(crate) layers: usize,
    pub(crate) devices: usize,
    /// Tokens of a sequence, and of the KV cache.
    pub(crate) context: usize,
    pub(crate) cache_tokens: usize,
    pub(crate) sequences_max: usize,
    pub(crate) requests_max: usize,
    pub(crate) prefix_cache: bool,
}

/// What is sent.
pub(crate) struct Asked {
    pub(crate) client: ClientId,
    pub(crate) ids: Vec<u32>,
    pub(crate) tokens: usize,
}

/// The stream of a request.
pub(crate) type Answer = flume::Receiver<Traced<StreamEvent>>;

/// The engine.
pub(crate) struct Engine {
    scheduler: Scheduler,
    workers: Vec<Worker>,
    graph: Arc<Graph>,
    admission: AdmissionLimit,
    messages: VecDeque<SchedulerMessage>,
    clock: OsClock,
    /// Chunks that left the scheduler.
    pub(crate) chunks: usize,
    /// Time that the scheduler took for each message after which it sent a chunk, in ns.
    pub(crate) sends: Vec<f64>,
}

impl Engine {
    pub(crate) fn new(size: &Size, policy: Box<dyn QueuePolicy>) -> Result<Engine, Box<dyn Error>> {
        let strategy: Arc<dyn Strategy> =
            if size.devices == 1 { Arc::new(CpuOnly) } else { Arc::new(LayerSplit) };
        Engine::with_strategy(size, policy, strategy)
    }

    pub(crate) fn with_strategy(
        size: &Size,
        policy: Box<dyn QueuePolicy>,
        strategy: Arc<dyn Strategy>,
    ) -> Result<Engine, Box<dyn Error>> {
        let Size { layers, devices, context, sequences_max, .. } = *size;
        let graph = Arc::new(graph(layers));
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
        let (page_rows, dtype) = (PAGE_ROWS, KvDtype::F16);
        let layout = KvLayout::uniform(1, KvHeads::new(1, 2), page_rows, dtype);
        let mut scheduler = Scheduler::new(SchedulerParts {
            config: SchedulerConfig { context, sequences_max, permits: 2, vocab: VOCAB },
            planner,
            kv: KvPages {
                pool: KvPool::new((size.cache_tokens / PAGE_ROWS) as u32),
                states: KvPool::new(0),
                layout,
            },
            policy,
        })?;
        if size.prefix_cache {
            scheduler.cache_prefixes(ModelId::default(), PrefixCache::new(PAGE_ROWS, None));
        }
        let worker = |(at, name)| Worker::new(DeviceId(at), name, 1);
        Ok(Engine {
            scheduler,
            workers: names.into_iter().enumerate().map(worker).collect(),
            graph,
            admission: AdmissionLimit::new(size.requests_max),
            messages: VecDeque::new(),
            clock: OsClock::start(),
            chunks: 0,
            sends: Vec::new(),
        })
    }

    /// Requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.scheduler.waiting()
    }

    /// Sends a request, which the scheduler reads at once.
    pub(crate) fn submit(&mut self, asked: Asked) -> Result<Answer, Box<dyn Error>> {
        let Asked { client, ids, tokens } = asked;
        let (sink, stream) = ChannelSink::new(tokens + 2);
        let generate = Generate {
            sampler: Sampler::new(SamplingParams::greedy(), &ids),
            stop_ids: [].into(),
            tokens_max: tokens,
            drafts: None,
        };
        let (task, trace) = (Task::Generate(Box::new(generate)), tracing::Span::none());
        let admission = self.admission.try_take().ok_or("no permit")?;
        let (model, prefix, urgency) =
            (ModelId::default(), PrefixUse::default(), Urgency::default());
        let submit = Submit { model, client, urgency, prefix, ids, task, sink, admission, trace };
        self.handle(SchedulerMessage::Submit(Box::new(submit)));
        Ok(stream)
    }

    /// Handles the next message; `false` when there is none.
    pub(crate) fn step(&mut self) -> bool {
        let Some(message) = self.messages.pop_front() else { return false };
        self.handle(message);
        true
    }

    fn handle(&mut self, message: SchedulerMessage) {
        let since = self.clock.now();
        let effects = self.scheduler.on(Traced::untraced(message), since);
        let took = self.clock.now().since(since).as_nanos() as f64;
        let before = self.chunks;
        for effect in effects {
            if let SchedulerEffect::Send(device, delivery, _) = effect {
                self.chunks += 1;
                self.work(device.0, delivery);
            } else if let SchedulerEffect::Emit(emission) = effect {
                let emission = emission.message;
                emission.sink.send(Traced::untraced(emission.event));
            }
        }
        if self.chunks > before {
            self.sends.push(took);
        }
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
        x = push(Op::RmsNorm { weight: Some(gain), group: 64, eps: 1e-5 }, &[x], 64, Some(layer));
        x = push(Op::MatMul { weight: matrix, bias: None }, &[x], 64, Some(layer));
    }
    let x = push(Op::SelectRows, &[x], 64, None);
    push(Op::MatMul { weight: head, bias: None }, &[x], VOCAB, None);
    graph
}
