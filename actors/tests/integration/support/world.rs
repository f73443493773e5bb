//! Engines of oracles in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lapwing_actors::RunError;
use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::drive::simulated::{Environment, SimulatedDevice, Simulation, SimulationParts};
use lapwing_actors::message::{
    FinishReason, SchedulerMessage, StreamEvent, Submit, Task, TraceContext, Traced,
};
use lapwing_actors::policy::{ClientId, Urgency};
use lapwing_actors::prefix::PrefixUse;
use lapwing_actors::sample::Scored;
use lapwing_actors::sequence::AdmissionLimit;
use lapwing_kernels::device::{ModelId, SlotPool};
use lapwing_kernels::kv::KvPool;
use lapwing_traces::Nanos;

use super::{Parts, Setup};

/// An engine in virtual time, with the resources that must all return.
pub struct World {
    pub sim: Simulation,
    pub pool: KvPool,
    /// Places of states.
    pub states: KvPool,
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
        World::with(setup, Simulation::new)
    }

    /// With devices that share what an environment has.
    pub fn within(setup: &Setup, env: Environment) -> World {
        let order: Vec<usize> = (0..setup.devices).collect();
        World::with(setup, |parts| Simulation::registered(parts, env, &order))
    }

    fn with(setup: &Setup, simulation: impl FnOnce(SimulationParts) -> Simulation) -> World {
        let Parts { scheduler, devices, graph, pool, states, rows_run, stages_run, buffers } =
            setup.parts();
        let devices = devices
            .into_iter()
            .zip(setup.times())
            .map(|(device, time)| SimulatedDevice { device, time })
            .collect();
        World {
            sim: simulation(SimulationParts {
                scheduler,
                devices,
                graphs: vec![graph],
                slots: SlotPool::default(),
                copy_rate: f64::INFINITY,
            }),
            pool,
            states,
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
        let places = self.states.free_pages() + self.sim.scheduler().cached_states();
        assert_eq!(places, self.states.capacity(), "places of states leaked");
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
