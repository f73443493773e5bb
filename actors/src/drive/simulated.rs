//! The simulated driver: the same state machines in virtual time, on one thread. Events are
//! ordered by (time, number), so that two runs with the same inputs are identical.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Memory};
use std::time::Duration;

use lapwing_kernels::device::{Batch, Device, DeviceError, Work};
use lapwing_kernels::graph::Graph;
use lapwing_traces::{Clock, Nanos, Recorder, RecorderConfig};

use super::record::{CallerTape, Outgoing, SchedulerTape, WorkerTape};
use crate::message::{Chunk, Posted, SchedulerMessage};
use crate::scheduler::{Scheduler, SchedulerEffect};
use crate::worker::{Worker, WorkerEffect};

/// How long a simulated device takes.
pub trait TimeModel {
    /// Time to run `nodes` over `batch`.
    fn run_time(&mut self, nodes: Range<usize>, batch: &Batch) -> Duration;
}

/// A fixed time per stage and per row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedRate {
    /// Time to start a stage.
    pub per_stage: Duration,
    /// Time per row.
    pub per_row: Duration,
}

impl TimeModel for FixedRate {
    fn run_time(&mut self, _nodes: Range<usize>, batch: &Batch) -> Duration {
        let rows = u32::try_from(batch.rows()).unwrap_or(u32::MAX);
        self.per_stage + self.per_row * rows
    }
}

/// A device in virtual time: true values from `device`, modelled time from `time`.
pub struct SimulatedDevice {
    /// Computes values.
    pub device: Box<dyn Device>,
    /// Says how long it took.
    pub time: Box<dyn TimeModel>,
}

/// Virtual time, for all to read.
#[derive(Debug, Default)]
struct VirtualClock(AtomicU64);

impl Clock for VirtualClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.load(Memory::Relaxed))
    }
}

/// A whole engine in virtual time.
pub struct Simulation {
    clock: Arc<VirtualClock>,
    recorder: Recorder,
    caller: CallerTape,
    tape: SchedulerTape,
    scheduler: Scheduler,
    actors: Vec<Actor>,
    events: BinaryHeap<Event>,
    next_event: u64,
    stopped: bool,
}

struct Actor {
    worker: Worker,
    tape: WorkerTape,
    device: SimulatedDevice,
}

struct Event {
    at: Nanos,
    number: u64,
    what: What,
}

enum What {
    /// A message from outside leaves for the scheduler.
    Outside(Box<SchedulerMessage>),
    Scheduler(Box<Posted<SchedulerMessage>>),
    Arrived(usize, Box<Chunk>),
    Ran(usize, Box<Chunk>, Result<(), DeviceError>),
}

impl Simulation {
    /// An engine at time 0. `graph` is the model's.
    pub fn new(
        scheduler: Scheduler,
        devices: Vec<SimulatedDevice>,
        graph: &Arc<Graph>,
    ) -> Simulation {
        let clock = Arc::new(VirtualClock::default());
        let recorder =
            Recorder::new(Arc::clone(&clock) as Arc<dyn Clock>, RecorderConfig::default());
        recorder.set_meta("clock", "virtual");
        let (caller, tape) = (CallerTape::new(&recorder), SchedulerTape::new(&recorder));
        let actors = devices
            .into_iter()
            .map(|device| Actor {
                worker: Worker::new(device.device.name().to_owned(), graph.output()),
                tape: WorkerTape::new(&recorder, device.device.name(), graph),
                device,
            })
            .collect();
        Simulation {
            clock,
            recorder,
            caller,
            tape,
            scheduler,
            actors,
            events: BinaryHeap::new(),
            next_event: 0,
            stopped: false,
        }
    }

    /// Virtual time.
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Is told what happens, in virtual time; off at first.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The scheduler, to look at.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Whether the scheduler has stopped the actors.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// Sends the scheduler a message at time `at` (or now, if that is past).
    pub fn send_at(&mut self, at: Nanos, message: SchedulerMessage) {
        self.push(at.max(self.now()), What::Outside(Box::new(message)));
    }

    /// Handles the next event; `false` when there is none.
    pub fn step(&mut self) -> bool {
        let Some(event) = self.events.pop() else { return false };
        self.clock.0.store(event.at.0, Memory::Relaxed);
        match event.what {
            What::Outside(message) => {
                let posted = self.caller.post(*message);
                self.on_scheduler(posted);
            }
            What::Scheduler(message) => self.on_scheduler(*message),
            What::Arrived(to, mut chunk) => {
                let Actor { worker, tape, .. } = &mut self.actors[to];
                tape.receive(&mut chunk, None);
                let effects = worker.on_chunk(chunk);
                tape.waiting(worker.waiting());
                self.carry_out(to, effects);
            }
            What::Ran(by, chunk, result) => {
                self.actors[by].tape.finish(&chunk, result.is_ok());
                let effects = self.actors[by].worker.on_done(chunk, result);
                self.carry_out(by, effects);
            }
        }
        true
    }

    /// Runs until nothing is left to happen; returns the time.
    pub fn run(&mut self) -> Nanos {
        while self.step() {}
        self.now()
    }

    fn push(&mut self, at: Nanos, what: What) {
        self.events.push(Event { at, number: self.next_event, what });
        self.next_event += 1;
    }

    fn on_scheduler(&mut self, posted: Posted<SchedulerMessage>) {
        if self.stopped {
            return;
        }
        self.tape.begin(&posted, None);
        for effect in self.scheduler.on(posted.message, self.now()) {
            match effect {
                SchedulerEffect::Send(device, mut chunk, hold) => {
                    self.tape.send(&mut chunk, hold);
                    self.push(self.now(), What::Arrived(device.0, chunk));
                }
                SchedulerEffect::Emit(emission) => {
                    let outgoing = self.tape.emit(emission);
                    self.deliver(outgoing);
                }
                SchedulerEffect::Note(note) => {
                    self.tape.note(note, self.scheduler.kv_page_bytes());
                }
                SchedulerEffect::Stop => self.stopped = true,
            }
        }
        self.tape.end(&self.scheduler);
    }

    /// Callers take an event at once, unless they are gone.
    fn deliver(&self, Outgoing { sink, event }: Outgoing) {
        if !sink.is_closed() {
            self.caller.received(&event);
        }
        sink.send(event);
    }

    fn carry_out(&mut self, actor: usize, effects: Vec<WorkerEffect>) {
        for effect in effects {
            let Actor { worker, tape, device } = &mut self.actors[actor];
            match effect {
                WorkerEffect::Run(mut chunk) => {
                    tape.waiting(worker.waiting());
                    tape.start(&chunk);
                    let SimulatedDevice { device, time } = device;
                    let nodes = chunk.stage().nodes.clone();
                    let span = time.run_time(nodes.clone(), &chunk.batch);
                    let Chunk { batch, tensors, .. } = &mut *chunk;
                    let result = device.run(Work { nodes, batch, tensors, observer: &mut () });
                    self.push(self.now() + span, What::Ran(actor, chunk, result));
                }
                WorkerEffect::Forward(to, mut chunk) => {
                    tape.forward(&mut chunk);
                    self.push(self.now(), What::Arrived(to.0, chunk));
                }
                WorkerEffect::Report(progress) => {
                    let Posted { message, sent } = tape.report(progress);
                    let message = SchedulerMessage::Progress(message);
                    let posted = Box::new(Posted { message, sent });
                    self.push(self.now(), What::Scheduler(posted));
                }
                WorkerEffect::Emit(emission) => {
                    let outgoing = tape.emit(emission);
                    self.deliver(outgoing);
                }
                WorkerEffect::Recycle(tensor) => device.device.recycle(tensor),
            }
        }
        self.actors[actor].tape.end();
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// Reversed, because the heap gives the greatest first.
    fn cmp(&self, other: &Event) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}
