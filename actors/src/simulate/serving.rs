//! A server of many requests in virtual time: the engine's scheduler, policies and prefix cache in front of one
//! device whose passes take stated times and yield token 0.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lapwing_kernels::device::{Blocking, DeviceInfo, DeviceKind, ModelId, SlotPool};
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvPool};
use lapwing_plan::DeviceId;
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::OneDevice;
use lapwing_plan::time::TimeModel;
use lapwing_traces::{Nanos, RequestTimes};

use super::error::SocRunError;
use super::pass_device::{PassDevice, graph};
use crate::drive::simulated::{SimulatedDevice, Simulation, SimulationParts};
use crate::message::{Generate, SchedulerMessage, Sink, StreamEvent, Submit, Task, Traced};
use crate::policy::{ClientId, QueuePolicy, Urgency};
use crate::prefix::{PrefixCache, PrefixUse};
use crate::sample::{Sampler, SamplingParams};
use crate::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use crate::sequence::AdmissionLimit;
use crate::stats::EngineStats;

/// A server of one device.
pub struct Serving {
    /// Time of a pass; its jobs have one node.
    pub time: Arc<dyn TimeModel>,
    /// Tokens that the KV cache holds.
    pub kv_tokens: usize,
    /// Tokens of a KV page.
    pub page_rows: usize,
    /// Maximum prompt rows of a pass.
    pub chunk_rows: usize,
    /// Maximum requests computed at the same time.
    pub sequences_max: usize,
    /// Whether requests share the pages of their common prefixes.
    pub prefix_cache: bool,
    /// Target of the time between two tokens of a stream; `None` has passes as large as they may be, as published servers do.
    pub token_gap: Option<Duration>,
    /// Orders requests.
    pub policy: Box<dyn QueuePolicy>,
}

/// A request to such a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// Virtual time of its arrival.
    pub at: Nanos,
    /// Client that sends it.
    pub client: ClientId,
    /// How urgent it is.
    pub urgency: Urgency,
    /// Token ids of the prompt; equal ids are equal rows.
    pub ids: Vec<u32>,
    /// Tokens to generate.
    pub tokens: usize,
}

/// What became of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Served {
    /// Times of its tokens.
    pub tokens: Vec<Nanos>,
    /// Times of its milestones, once it has all tokens.
    pub times: Option<RequestTimes>,
    /// Why it failed.
    pub error: Option<String>,
}

/// One past the largest token id of a prompt.
pub const VOCAB: usize = 1 << 31;

/// Receives the events of all requests until the loop has seen them.
#[derive(Debug, Default)]
struct Inbox(Mutex<Vec<(usize, StreamEvent)>>);

/// The stream of one request.
#[derive(Debug)]
struct ToInbox {
    number: usize,
    inbox: Arc<Inbox>,
}

impl Sink for ToInbox {
    fn send(&self, event: Traced<StreamEvent>) {
        let mut events = self.inbox.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.push((self.number, event.message));
    }

    fn is_closed(&self) -> bool {
        false
    }
}

impl Serving {
    /// Serves requests until all have ended, or until a virtual time; the result has one entry for each request,
    /// and what the server did in all.
    ///
    /// # Errors
    /// [`SocRunError`] if no pass can be planned, or requests are left although nothing happens any more.
    pub fn run(
        self,
        arrivals: &[Arrival],
        until: Option<Nanos>,
    ) -> Result<(Vec<Served>, EngineStats), SocRunError> {
        let context = arrivals.iter().map(|a| a.ids.len() + a.tokens + 1).max().unwrap_or(1);
        let mut simulation = self.simulation(context)?;
        let inbox = Arc::new(Inbox::default());
        let admission = AdmissionLimit::new(arrivals.len());
        for (number, arrival) in arrivals.iter().enumerate() {
            let Some(admission) = admission.try_take() else { break };
            let sink = Arc::new(ToInbox { number, inbox: Arc::clone(&inbox) });
            let sampler = Sampler::new(SamplingParams::greedy(), &[]);
            let (stop_ids, drafts) = ([].into(), None);
            let generate = Generate { sampler, stop_ids, tokens_max: arrival.tokens, drafts };
            let submit = Submit {
                model: ModelId(0),
                ids: arrival.ids.clone(),
                task: Task::Generate(Box::new(generate)),
                client: arrival.client.clone(),
                urgency: arrival.urgency,
                prefix: PrefixUse::default(),
                sink,
                admission,
                trace: tracing::Span::none(),
            };
            simulation.send_at(arrival.at, SchedulerMessage::Submit(Box::new(submit)));
        }
        let mut served = vec![Served::default(); arrivals.len()];
        while until.is_none_or(|until| simulation.now() < until) && simulation.step() {
            let now = simulation.now();
            let mut events = inbox.0.lock().unwrap_or_else(PoisonError::into_inner);
            for (number, event) in events.drain(..) {
                served[number].on(event, now);
            }
        }
        let scheduler = simulation.scheduler();
        let (sequences, chunks) = (scheduler.sequences(), scheduler.chunks_in_flight());
        match until.is_none() && sequences > 0 {
            true => Err(SocRunError::Stuck { sequences, chunks }),
            false => Ok((served, scheduler.stats())),
        }
    }

    fn simulation(self, context: usize) -> Result<Simulation, SocRunError> {
        let graph = Arc::new(graph(0));
        let info = DeviceInfo::new("server", DeviceKind::Gpu);
        let planner = Planner::new(PlannerParts {
            model: ModelId(0),
            graph: Arc::clone(&graph),
            devices: vec![info.clone()],
            cost: Arc::new(Modelled {
                devices: vec![Arc::clone(&self.time)],
                sync: Duration::ZERO,
                copy_rate: f64::INFINITY,
            }),
            strategy: Arc::new(OneDevice { device: DeviceId(0) }),
            chunk_rows: self.chunk_rows,
        });
        let page_rows = self.page_rows.max(1);
        let layout = KvLayout::uniform(1, KvHeads::new(1, 2), page_rows, KvDtype::F16);
        let pages = u32::try_from(self.kv_tokens / page_rows).unwrap_or(u32::MAX);
        let sequences_max = self.sequences_max;
        let mut scheduler = Scheduler::new(SchedulerParts {
            // A server with one permit forms each batch when the one before has ended.
            config: SchedulerConfig { context, sequences_max, permits: 1, vocab: VOCAB },
            planner,
            kv: KvPages { pool: KvPool::new(pages), states: KvPool::new(0), layout },
            policy: self.policy,
        })?;
        match self.token_gap {
            Some(gap) => scheduler.set_token_gap(Some(gap)),
            None => scheduler.keep_chunks_whole(),
        }
        if self.prefix_cache {
            scheduler.cache_prefixes(ModelId(0), PrefixCache::new(page_rows, None));
        }
        let device = PassDevice::new(&graph, None);
        let device = Box::new(Blocking::new(info, device));
        Ok(Simulation::new(SimulationParts {
            scheduler,
            devices: vec![SimulatedDevice { device, time: self.time }],
            graphs: vec![graph],
            slots: SlotPool::default(),
            copy_rate: f64::INFINITY,
        }))
    }
}

impl Served {
    fn on(&mut self, event: StreamEvent, now: Nanos) {
        match event {
            StreamEvent::Token(_) => self.tokens.push(now),
            StreamEvent::Finished(finished) => self.times = Some(finished.times),
            StreamEvent::Failed(error) => self.error = Some(error.to_string()),
            StreamEvent::Prompt(_) | StreamEvent::Scores(_) | StreamEvent::Hidden(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
