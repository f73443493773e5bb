//! An engine in virtual time with its callers: what every whole run is set up from, and its loop.

use std::sync::Arc;

use lapwing_kernels::device::SlotPool;
use lapwing_kernels::graph::Graph;
use lapwing_traces::{Nanos, Recorder};

use super::mailbox::ChannelSink;
use super::simulated::{SimulatedDevice, Simulation, SimulationParts, Surroundings, Usage};
use super::soc::SocRunError;
use crate::message::{Generate, SchedulerMessage, Submit, Task};
use crate::plan::planner::Planner;
use crate::policy::Fcfs;
use crate::sample::{Sampler, SamplingParams};
use crate::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use crate::sequence::Door;

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
    /// Most tokens of a sequence.
    pub context: usize,
    /// Most requests at once.
    pub requests_max: usize,
    /// Chunks in flight.
    pub permits: usize,
    /// Bytes per second at which parts are put together.
    pub copy_rate: f64,
    /// What the devices share, and what disturbs them.
    pub around: Surroundings,
}

/// An engine in virtual time. Requests follow each other; what one of them has left prepared is
/// there for the next.
pub struct VirtualEngine {
    simulation: Simulation,
    door: Door,
    kv: KvPages,
}

/// Callers that ask for the same at once.
#[derive(Clone, Copy, Debug)]
pub struct Callers<'a> {
    /// Prompt of each.
    pub ids: &'a [u32],
    /// How many.
    pub count: usize,
    /// Tokens after the first, of each.
    pub decode: usize,
    /// When they leave, in virtual time.
    pub cancel: Option<Nanos>,
}

/// A time, and what the devices have done until then.
pub type Moment = (Nanos, Usage);

/// What callers saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// They ask.
    pub begin: Moment,
    /// Each of them has its first token.
    pub first: Moment,
    /// The latest token.
    pub last: Moment,
    /// Tokens after `first`, of all callers.
    pub later: usize,
    /// Tokens of the first caller.
    pub tokens: Vec<u32>,
}

impl VirtualEngine {
    /// An engine at time 0, without requests.
    ///
    /// # Errors
    /// [`SocRunError::Plan`] when there is no route for what the engine can be asked.
    pub fn new(parts: VirtualParts) -> Result<VirtualEngine, SocRunError> {
        let VirtualParts { graph, planner, devices, kv, slots, .. } = parts;
        let VirtualParts { context, requests_max, permits, copy_rate, around, .. } = parts;
        let vocab = graph.value(graph.output()).width;
        let scheduler = Scheduler::new(SchedulerParts {
            config: SchedulerConfig { context, sequences_max: requests_max, permits, vocab },
            planner,
            kv: KvPages { pool: kv.pool.clone(), layout: kv.layout },
            policy: Box::new(Fcfs),
        })?;
        let parts = SimulationParts { scheduler, devices, graph, slots, copy_rate };
        let simulation = Simulation::with_surroundings(parts, around);
        Ok(VirtualEngine { simulation, door: Door::new(requests_max), kv })
    }

    /// Is told what happens; off at first.
    pub fn recorder(&self) -> &Recorder {
        self.simulation.recorder()
    }

    /// Serves callers to the end.
    ///
    /// # Errors
    /// [`SocRunError`] when a request fails, the callers leave before the first token, something is
    /// left in the engine, or there are more of them than it takes.
    pub fn run(&mut self, callers: &Callers<'_>) -> Result<Seen, SocRunError> {
        let begin = (self.simulation.now(), self.simulation.usage().cloned().unwrap_or_default());
        let mut watch = Watch::new(callers.cancel);
        for _ in 0..callers.count {
            let ticket = self.door.try_take().ok_or(SocRunError::Option {
                what: "the number of callers",
                found: callers.count,
                from: 1,
                to: self.door.limit(),
            })?;
            let (sink, events) = ChannelSink::new(callers.decode + 4);
            watch.add(events);
            let generate = Generate {
                sampler: Sampler::new(SamplingParams::greedy(), &[]),
                stop_ids: [].into(),
                tokens_max: callers.decode + 1,
            };
            let (ids, trace) = (callers.ids.to_vec(), tracing::Span::none());
            let task = Task::Generate(Box::new(generate));
            let submit = Submit { ids, task, sink, ticket, traced: false, trace };
            self.simulation.send_at(begin.0, SchedulerMessage::Submit(Box::new(submit)));
        }
        if let Some(at) = callers.cancel {
            self.simulation.send_at(at, SchedulerMessage::Wake);
        }
        watch.run(&mut self.simulation);
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
        let tickets = self.door.in_use();
        if pages + tickets + chunks > 0 {
            return Err(SocRunError::Leak { pages, tickets, chunks });
        }
        Ok(())
    }
}
