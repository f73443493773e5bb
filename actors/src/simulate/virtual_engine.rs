//! An engine in virtual time with its callers: what every whole run is set up from, and its loop.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{ModelId, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_traces::{Nanos, Recorder};

use super::error::SocRunError;
use crate::draft::Drafter;
use crate::drive::mailbox::ChannelSink;
use crate::drive::simulated::{
    DeviceUsage, Environment, SimulatedDevice, Simulation, SimulationParts, Usage,
};
use crate::message::{Generate, SchedulerMessage, Submit, Task};
use crate::policy::{ClientId, QueuePolicy};
use crate::sample::{Sampler, SamplingParams};
use crate::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use crate::sequence::AdmissionLimit;
use lapwing_plan::planner::Planner;

mod watch;

use watch::Watch;

/// What an engine in virtual time is made of.
pub struct VirtualParts {
    /// The model's ops.
    pub graph: Arc<Graph>,
    /// Makes routes.
    pub planner: Planner,
    /// Devices, by their number.
    pub devices: Vec<SimulatedDevice>,
    /// Pages of the cache.
    pub kv: KvPages,
    /// Where results lie.
    pub slots: SlotPool,
    /// Orders requests.
    pub policy: Box<dyn QueuePolicy>,
    /// Most tokens of a sequence.
    pub context: usize,
    /// Chunks in flight.
    pub permits: usize,
    /// Bytes per second at which parts are put together.
    pub copy_rate: f64,
    /// What the devices share, and what disturbs them.
    pub env: Environment,
    /// Numbers of the devices in the order in which their actors are registered.
    pub order: Vec<usize>,
}

/// An engine in virtual time. Requests follow each other; what one of them has left prepared is
/// there for the next.
pub struct VirtualEngine {
    simulation: Simulation,
    admission: AdmissionLimit,
    kv: KvPages,
}

/// Who asks for one generation.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// Prompt.
    pub ids: &'a [u32],
    /// Steps of generation after the first token.
    pub decode: usize,
    /// Rows of each step: the token that is due, and a draft. Devices without values choose token 0
    /// everywhere, so a draft of zeros is accepted as a whole.
    pub verify: usize,
    /// When it leaves, in virtual time.
    pub cancel: Option<Nanos>,
}

/// A draft of that many zeros.
#[derive(Clone, Copy, Debug)]
struct Zeros(usize);

impl Drafter for Zeros {
    fn draft(&mut self, _ids: &[u32], most: usize) -> Vec<u32> {
        vec![0; self.0.min(most)]
    }
}

/// A time, and what the devices have done until then.
pub type Moment = (Nanos, Usage);

/// What a caller saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// It asks.
    pub begin: Moment,
    /// It has its first token.
    pub first: Moment,
    /// The latest token.
    pub last: Moment,
    /// Tokens after the first.
    pub later: usize,
    /// All tokens.
    pub tokens: Vec<u32>,
}

impl Seen {
    /// No order of the same work ends earlier: the work of the busiest device, or the longest chain
    /// of runs, with the times that they take alone.
    pub fn lower_bound(&self) -> Duration {
        let (before, after) = (&self.begin.1.devices, &self.last.1.devices);
        let zero = DeviceUsage::default();
        let before = before.iter().chain(std::iter::repeat(&zero));
        let alone = after.iter().zip(before).map(|(after, before)| after.alone.since(before.alone));
        alone.max().unwrap_or_default().max(self.last.1.critical.since(Nanos(0)))
    }
}

impl VirtualEngine {
    /// An engine at time 0, without requests.
    ///
    /// # Errors
    /// [`SocRunError::Plan`] when there is no route for what the engine can be asked.
    pub fn new(parts: VirtualParts) -> Result<VirtualEngine, SocRunError> {
        let VirtualParts { graph, planner, devices, kv, slots, policy, .. } = parts;
        let VirtualParts { context, permits, copy_rate, env, order, .. } = parts;
        let vocab = graph.value(graph.output()).width;
        let scheduler = Scheduler::new(SchedulerParts {
            config: SchedulerConfig { context, sequences_max: 1, permits, vocab },
            planner,
            kv: KvPages { pool: kv.pool.clone(), layout: kv.layout },
            policy,
        })?;
        let graphs = vec![graph];
        let parts = SimulationParts { scheduler, devices, graphs, slots, copy_rate };
        let simulation = Simulation::registered(parts, env, &order);
        Ok(VirtualEngine { simulation, admission: AdmissionLimit::new(1), kv })
    }

    /// Is told what happens; off at first.
    pub fn recorder(&self) -> &Recorder {
        self.simulation.recorder()
    }

    /// Serves a caller to the end.
    ///
    /// # Errors
    /// [`SocRunError`] when the request fails, the caller leaves before the first token, or
    /// something is left in the engine.
    pub fn run(&mut self, caller: &Caller<'_>) -> Result<Seen, SocRunError> {
        self.simulation.forget_chains();
        let begin = (self.simulation.now(), self.simulation.usage().unwrap_or_default());
        let (sink, events) = ChannelSink::new(caller.decode * caller.verify + 4);
        let mut watch = Watch::new(events, caller.cancel);
        let generate = Generate {
            sampler: Sampler::new(SamplingParams::greedy(), &[]),
            stop_ids: [].into(),
            tokens_max: caller.decode * caller.verify + 1,
            drafter: (caller.verify > 1).then(|| Box::new(Zeros(caller.verify - 1)) as Box<_>),
        };
        if let Some(admission) = self.admission.try_take() {
            let (ids, trace) = (caller.ids.to_vec(), tracing::Span::none());
            let task = Task::Generate(Box::new(generate));
            let model = ModelId::default();
            let submit =
                Submit { model, ids, task, client: ClientId::anonymous(), sink, admission, trace };
            self.simulation.send_at(begin.0, SchedulerMessage::Submit(Box::new(submit)));
        }
        if let Some(at) = caller.cancel {
            self.simulation.send_at(at, SchedulerMessage::Wake);
        }
        watch.run(&mut self.simulation);
        watch.result_if_given_up()?;
        self.check()?;
        watch.seen(begin)
    }

    /// Whether everything came back.
    fn check(&self) -> Result<(), SocRunError> {
        let scheduler = self.simulation.scheduler();
        let (sequences, chunks) = (scheduler.sequences(), scheduler.chunks_in_flight());
        if sequences > 0 {
            return Err(SocRunError::Stuck { sequences, chunks });
        }
        let pages = self.kv.pool.capacity() - self.kv.pool.free_pages();
        let tickets = self.admission.in_use();
        let (slots, left) = (self.simulation.slots_in_use(), self.simulation.left());
        if pages + tickets + chunks + slots + left > 0 {
            return Err(SocRunError::Leak { pages, tickets, chunks, slots, left });
        }
        Ok(())
    }
}
