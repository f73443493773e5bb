//! The simulated driver: the same state machines in virtual time, on one thread. Events are
//! ordered by (time, number), so that two runs with the same inputs are identical.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use lapwing_kernels::device::{Batch, Device, DeviceError, Work};
use lapwing_kernels::graph::ValueId;
use lapwing_traces::Nanos;

use crate::message::{Chunk, SchedulerMessage};
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

/// A whole engine in virtual time.
pub struct Simulation {
    now: Nanos,
    scheduler: Scheduler,
    actors: Vec<Actor>,
    events: BinaryHeap<Event>,
    next_event: u64,
    stopped: bool,
}

struct Actor {
    worker: Worker,
    device: SimulatedDevice,
}

struct Event {
    at: Nanos,
    number: u64,
    what: What,
}

enum What {
    Scheduler(Box<SchedulerMessage>),
    Arrived(usize, Box<Chunk>),
    Ran(usize, Box<Chunk>, Result<(), DeviceError>),
}

impl Simulation {
    /// An engine at time 0. `logits` is the graph's output.
    pub fn new(scheduler: Scheduler, devices: Vec<SimulatedDevice>, logits: ValueId) -> Simulation {
        let actors = devices
            .into_iter()
            .map(|device| Actor {
                worker: Worker::new(device.device.name().to_owned(), logits),
                device,
            })
            .collect();
        Simulation {
            now: Nanos(0),
            scheduler,
            actors,
            events: BinaryHeap::new(),
            next_event: 0,
            stopped: false,
        }
    }

    /// Virtual time.
    pub fn now(&self) -> Nanos {
        self.now
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
        self.push(at.max(self.now), What::Scheduler(Box::new(message)));
    }

    /// Handles the next event; `false` when there is none.
    pub fn step(&mut self) -> bool {
        let Some(event) = self.events.pop() else { return false };
        self.now = event.at;
        match event.what {
            What::Scheduler(message) => self.on_scheduler(*message),
            What::Arrived(to, chunk) => {
                let effects = self.actors[to].worker.on_chunk(chunk);
                self.carry_out(to, effects);
            }
            What::Ran(by, chunk, result) => {
                let effects = self.actors[by].worker.on_done(chunk, result);
                self.carry_out(by, effects);
            }
        }
        true
    }

    /// Runs until nothing is left to happen; returns the time.
    pub fn run(&mut self) -> Nanos {
        while self.step() {}
        self.now
    }

    fn push(&mut self, at: Nanos, what: What) {
        self.events.push(Event { at, number: self.next_event, what });
        self.next_event += 1;
    }

    fn on_scheduler(&mut self, message: SchedulerMessage) {
        if self.stopped {
            return;
        }
        for effect in self.scheduler.on(message, self.now) {
            match effect {
                SchedulerEffect::Send(device, chunk) => {
                    self.push(self.now, What::Arrived(device.0, chunk));
                }
                SchedulerEffect::Emit(sink, event) => sink.send(event),
                SchedulerEffect::Stop => self.stopped = true,
            }
        }
    }

    fn carry_out(&mut self, actor: usize, effects: Vec<WorkerEffect>) {
        for effect in VecDeque::from(effects) {
            match effect {
                WorkerEffect::Run(mut chunk) => {
                    let SimulatedDevice { device, time } = &mut self.actors[actor].device;
                    let nodes = chunk.stage().nodes.clone();
                    let span = time.run_time(nodes.clone(), &chunk.batch);
                    let Chunk { batch, tensors, .. } = &mut *chunk;
                    let result = device.run(Work { nodes, batch, tensors });
                    self.push(self.now + span, What::Ran(actor, chunk, result));
                }
                WorkerEffect::Forward(device, chunk) => {
                    self.push(self.now, What::Arrived(device.0, chunk));
                }
                WorkerEffect::Report(progress) => {
                    let message = SchedulerMessage::Progress(progress);
                    self.push(self.now, What::Scheduler(Box::new(message)));
                }
                WorkerEffect::Recycle(tensor) => self.actors[actor].device.device.recycle(tensor),
            }
        }
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
