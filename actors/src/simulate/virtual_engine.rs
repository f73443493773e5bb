//! An engine in virtual time with its callers: the set-up and the loop of a whole run.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{ModelId, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_traces::{Nanos, Recorder};

use super::error::SocRunError;
use crate::draft::{Drafter, Drafts};
use crate::drive::mailbox::ChannelSink;
use crate::drive::simulated::{
    DeviceUsage, Environment, SimulatedDevice, Simulation, SimulationParts, Usage,
};
use crate::message::{Generate, SchedulerMessage, Submit, Task};
use crate::policy::{ClientId, QueuePolicy, Urgency};
use crate::prefix::PrefixUse;
use crate::sample::{Sampler, SamplingParams};
use crate::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use crate::sequence::AdmissionLimit;
use lapwing_plan::planner::Planner;

mod watch;

use watch::Watch;

/// The components of an engine in virtual time.
pub struct VirtualParts {
    /// The model's ops.
    pub graph: Arc<Graph>,
    /// Chooses routes and chunk sizes.
    pub planner: Planner,
    /// Devices, by their number.
    pub devices: Vec<SimulatedDevice>,
    /// Pages of the cache.
    pub kv: KvPages,
    /// Pool of the buffers that hold results.
    pub slots: SlotPool,
    /// Orders requests.
    pub policy: Box<dyn QueuePolicy>,
    /// Maximum tokens of a sequence.
    pub context: usize,
    /// Maximum number of chunks in flight.
    pub permits: usize,
    /// Rate at which parts are merged, in bytes per second.
    pub copy_rate: f64,
    /// The devices' environment.
    pub env: Environment,
    /// Numbers of the devices in the order in which their actors are registered.
    pub order: Vec<usize>,
}

/// An engine in virtual time. It serves one request at a time; prepared graphs stay ready for the next
/// request.
pub struct VirtualEngine {
    simulation: Simulation,
    admission: AdmissionLimit,
    kv: KvPages,
}

/// The caller of one generation.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// Token ids of the prompt.
    pub ids: &'a [u32],
    /// Number of decode steps after the first token.
    pub decode: usize,
    /// Rows of each decode step: the latest token and a draft. Devices without values always yield token
    /// 0, so a draft of zeros is accepted completely.
    pub verify: usize,
    /// Virtual time at which it cancels.
    pub cancel: Option<Nanos>,
}

/// Proposes that many tokens 0.
#[derive(Clone, Copy, Debug)]
struct Zeros(usize);

impl Drafter for Zeros {
    fn draft(&mut self, _ids: &[u32], most: usize) -> Vec<u32> {
        vec![0; self.0.min(most)]
    }
}

/// A time, and the devices' usage until then.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// The time.
    pub at: Nanos,
    /// Usage since the start.
    pub usage: Usage,
}

/// A caller's observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Moment of the request.
    pub begin: Moment,
    /// Moment of the first token.
    pub first: Moment,
    /// Moment of the last token.
    pub last: Moment,
    /// Number of tokens after the first.
    pub later: usize,
    /// Ids of all tokens.
    pub tokens: Vec<u32>,
}

impl Seen {
    /// Lower bound of the time for any order of the same work: the maximum of the busiest device's work
    /// and of the longest dependency chain, with times without contention.
    pub fn lower_bound(&self) -> Duration {
        let (before, after) = (&self.begin.usage.devices, &self.last.usage.devices);
        let zero = DeviceUsage::default();
        let before = before.iter().chain(std::iter::repeat(&zero));
        let alone = after.iter().zip(before).map(|(after, before)| after.alone.since(before.alone));
        alone.max().unwrap_or_default().max(self.last.usage.critical.since(Nanos(0)))
    }
}

impl VirtualEngine {
    /// An engine at time 0, without requests.
    ///
    /// # Errors
    /// [`SocRunError::Plan`] when the strategy finds no route for a whole chunk or a decode step.
    pub fn new(parts: VirtualParts) -> Result<VirtualEngine, SocRunError> {
        let VirtualParts { graph, planner, devices, kv, slots, policy, .. } = parts;
        let VirtualParts { context, permits, copy_rate, env, order, .. } = parts;
        let vocab = graph.value(graph.output()).width;
        let scheduler = Scheduler::new(SchedulerParts {
            config: SchedulerConfig { context, sequences_max: 1, permits, vocab },
            planner,
            kv: kv.clone(),
            policy,
        })?;
        let graphs = vec![graph];
        let parts = SimulationParts { scheduler, devices, graphs, slots, copy_rate };
        let simulation = Simulation::registered(parts, env, &order);
        Ok(VirtualEngine { simulation, admission: AdmissionLimit::new(1), kv })
    }

    /// The recorder; off at first.
    pub fn recorder(&self) -> &Recorder {
        self.simulation.recorder()
    }

    /// Serves a caller to the end.
    ///
    /// # Errors
    /// [`SocRunError`] when the request fails, the caller cancels before the first token, or
    /// resources are left in the engine.
    pub fn run(&mut self, caller: &Caller<'_>) -> Result<Seen, SocRunError> {
        self.simulation.forget_chains();
        let usage = self.simulation.usage().unwrap_or_default();
        let begin = Moment { at: self.simulation.now(), usage };
        let (sink, events) = ChannelSink::new(caller.decode * caller.verify + 4);
        let mut watch = Watch::new(events, caller.cancel);
        let generate = Generate {
            sampler: Sampler::new(SamplingParams::greedy(), &[]),
            stop_ids: [].into(),
            tokens_max: caller.decode * caller.verify + 1,
            drafts: (caller.verify > 1).then(|| {
                Box::new(Drafts::new(Box::new(Zeros(caller.verify - 1))).always(caller.verify - 1))
            }),
        };
        if let Some(admission) = self.admission.try_take() {
            let (ids, trace) = (caller.ids.to_vec(), tracing::Span::none());
            let task = Task::Generate(Box::new(generate));
            let model = ModelId::default();
            let (client, prefix) = (ClientId::anonymous(), PrefixUse::Off);
            let urgency = Urgency::default();
            let submit =
                Submit { model, ids, task, client, urgency, prefix, sink, admission, trace };
            self.simulation.send_at(begin.at, SchedulerMessage::Submit(Box::new(submit)));
        }
        if let Some(at) = caller.cancel {
            self.simulation.send_at(at, SchedulerMessage::Wake);
        }
        watch.run(&mut self.simulation);
        watch.result_if_given_up()?;
        self.check()?;
        watch.seen(begin)
    }

    /// Checks that all resources were released.
    fn check(&self) -> Result<(), SocRunError> {
        let scheduler = self.simulation.scheduler();
        let (sequences, chunks) = (scheduler.sequences(), scheduler.chunks_in_flight());
        if sequences > 0 {
            return Err(SocRunError::Stuck { sequences, chunks });
        }
        let pages = self.kv.pool.capacity() - self.kv.pool.free_pages();
        let admissions = self.admission.in_use();
        let (slots, left) = (self.simulation.slots_in_use(), self.simulation.left());
        if pages + admissions + chunks + slots + left > 0 {
            return Err(SocRunError::Leak { pages, admissions, chunks, slots, left });
        }
        Ok(())
    }
}
