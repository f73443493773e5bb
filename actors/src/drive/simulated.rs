//! The simulated driver: the same state machines in virtual time, on one thread. Events are ordered
//! by (time, number), so two runs with the same inputs are identical.

use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering as Memory;
use std::time::Duration;

use lapwing_kernels::device::{Completed, Preparer, RunId, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_traces::{Clock, Nanos, Recorder};

use super::record::{CallerTrace, Outgoing, PrepareTrace, SchedulerTrace, WorkerTrace};
use crate::chunk::Begun;
use crate::message::{SchedulerMessage, Traced};
use crate::scheduler::{Scheduler, SchedulerEffect};
use crate::worker::Worker;

mod effects;
mod environment;
mod events;
mod merge;
mod noise;
mod parts;
mod sharing;
mod start;

pub use environment::{DeviceUsage, Environment, GpuInterference, Noise, Usage};
use events::{Event, What};
use parts::VirtualClock;
pub use parts::{SimulatedDevice, SimulationParts};
use sharing::{Ran, Sharing};

/// A whole engine in virtual time.
pub struct Simulation {
    clock: Arc<VirtualClock>,
    recorder: Recorder,
    caller: CallerTrace,
    trace: SchedulerTrace,
    scheduler: Scheduler,
    /// In order of registration.
    actors: Vec<Actor>,
    /// By device number: the index of its actor.
    places: Vec<usize>,
    graphs: Vec<Arc<Graph>>,
    slots: SlotPool,
    copy_rate: f64,
    events: BinaryHeap<Event>,
    next_event: u64,
    /// Number of pending events other than frames.
    work: usize,
    sharing: Option<Sharing>,
    /// Time of all runs so far, without an environment.
    busy: Duration,
    stopped: bool,
}

struct Actor {
    worker: Worker,
    trace: WorkerTrace,
    device: SimulatedDevice,
    /// Runs that the device has completed in real time, whose modelled time may not be over.
    completed: VecDeque<Completed>,
    /// Runs submitted behind the present one, in order of submission.
    queue: VecDeque<Ran>,
    /// Whether a run is in progress.
    running: bool,
    /// The run in progress, if its chunk has predicted times.
    begun: Option<Begun>,
    next_run: RunId,
    /// Whether it is merging parts.
    merging: bool,
    /// Its preparation lane.
    lane: Option<(Box<dyn Preparer>, PrepareTrace)>,
}

impl Simulation {
    /// The devices' usage until now; `None` without an environment.
    pub fn usage(&self) -> Option<Usage> {
        self.sharing.as_ref().map(|sharing| sharing.usage(self.now()))
    }

    /// Makes [`Usage::critical`] cover only runs that begin from now on.
    pub fn forget_chains(&mut self) {
        self.sharing.iter_mut().for_each(Sharing::forget_chains);
    }

    /// Number of frames that the renderer has finished.
    pub fn frames(&self) -> usize {
        self.sharing.as_ref().map_or(0, Sharing::frames)
    }

    /// Number of pending events, of chunks and parts that wait for devices, and of runs in progress.
    pub fn left(&self) -> usize {
        let waiting: usize = self.actors.iter().map(|actor| actor.worker.waiting()).sum();
        let running = self.sharing.as_ref().map_or(0, Sharing::in_flight);
        let queued: usize = self.actors.iter().map(|actor| actor.queue.len()).sum();
        self.events.len() + waiting + running + queued
    }

    /// Time of all runs of all devices so far, those in progress in full. Zero with an environment; [`usage`](Simulation::usage)
    /// has it then.
    pub fn busy(&self) -> Duration {
        self.busy
    }

    /// Number of slots whose values have not been released.
    pub fn slots_in_use(&self) -> usize {
        self.slots.stats().in_use
    }

    /// Virtual time.
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Time of the next event.
    pub fn next_at(&self) -> Option<Nanos> {
        self.events.peek().map(|event| event.at)
    }

    /// The recorder, in virtual time; off at first.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The scheduler, read-only.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Whether the scheduler has stopped the actors.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// Sends the scheduler a message at time `at` (or now, if that is past).
    pub fn send_at(&mut self, at: Nanos, message: impl Into<Traced<SchedulerMessage>>) {
        self.push(at.max(self.now()), What::Outside(Box::new(message.into())));
    }

    /// Hands the scheduler a message at time `at`, before the events of that time. No earlier event may be left.
    pub fn handle_at(&mut self, at: Nanos, message: impl Into<Traced<SchedulerMessage>>) {
        debug_assert!(self.next_at().is_none_or(|next| next >= at), "an earlier event is left");
        self.clock.0.store(at.0, Memory::Relaxed);
        let posted = self.caller.post(message.into());
        self.on_scheduler(posted);
    }

    /// Handles the next event; `false` when there is none.
    pub fn step(&mut self) -> bool {
        let Some(event) = self.events.pop() else { return false };
        self.clock.0.store(event.at.0, Memory::Relaxed);
        self.work -= usize::from(event.what.is_work());
        match event.what {
            What::Outside(message) => {
                let posted = self.caller.post(*message);
                self.on_scheduler(posted);
            }
            What::Scheduler(message) => self.on_scheduler(*message),
            What::Arrived(to, mut delivery) => {
                let Actor { worker, trace, .. } = &mut self.actors[to];
                trace.receive(&mut delivery, None);
                let effects = worker.on_delivery(delivery);
                trace.waiting(worker.waiting());
                self.carry_out(to, effects, false);
            }
            What::Nudged(to) => {
                let effects = self.actors[to].worker.on_nudge();
                self.carry_out(to, effects, false);
            }
            What::Ran(by, ran) => self.on_ran(by, *ran),
            What::Due(due) => self.on_due(due),
            What::Merged(by, chunk, merged) => {
                let now = self.now();
                if let Some(sharing) = &mut self.sharing {
                    sharing.merged(now, by, &chunk);
                }
                self.actors[by].merging = false;
                let effects = self.actors[by].worker.on_merged(chunk, merged);
                self.carry_out(by, effects, true);
            }
            What::Prepared(by, prepared) => {
                let message = SchedulerMessage::Prepared(prepared);
                let posted = match &mut self.actors[by].lane {
                    Some((_, trace)) => trace.end(message),
                    None => Traced::untraced(message),
                };
                self.on_scheduler(posted);
            }
        }
        true
    }

    /// Runs until no event is left; returns the virtual time.
    pub fn run(&mut self) -> Nanos {
        while self.step() {}
        self.now()
    }

    fn push(&mut self, at: Nanos, what: What) {
        self.work += usize::from(what.is_work());
        self.events.push(Event { at, number: self.next_event, what });
        self.next_event += 1;
    }

    fn on_scheduler(&mut self, posted: Traced<SchedulerMessage>) {
        if self.stopped {
            return;
        }
        self.trace.begin(&posted, None);
        for effect in self.scheduler.on(posted, self.now()) {
            match effect {
                SchedulerEffect::Send(device, mut delivery, stall) => {
                    self.trace.send(&mut delivery, stall);
                    self.trace.need(&delivery, &mut self.scheduler);
                    self.push(self.now(), What::Arrived(self.places[device.0], delivery));
                }
                SchedulerEffect::Copy(copy) => {
                    if let Err(roll_back) = copy.run() {
                        self.send_at(self.now(), SchedulerMessage::RollBack(roll_back));
                    }
                }
                SchedulerEffect::Nudge(device) => {
                    self.push(self.now(), What::Nudged(self.places[device.0]));
                }
                SchedulerEffect::Prepare(asked) => {
                    let asked = self.trace.prepare(asked);
                    self.prepare(asked);
                }
                SchedulerEffect::Rest(_, at) => {
                    let rested = Traced::untraced(SchedulerMessage::Rested);
                    self.push(at, What::Scheduler(Box::new(rested)));
                }
                SchedulerEffect::Emit(emission) => {
                    let outgoing = self.trace.emit(emission);
                    self.deliver(outgoing);
                }
                SchedulerEffect::Note(note) => {
                    self.trace.note(note, self.scheduler.kv_page_bytes());
                }
                SchedulerEffect::Stop => self.stopped = true,
            }
        }
        self.trace.end(&self.scheduler);
    }

    /// Callers receive an event at once, unless they have dropped the stream.
    fn deliver(&self, Outgoing { sink, event }: Outgoing) {
        if !sink.is_closed() {
            self.caller.received(&event);
        }
        sink.send(event);
    }
}
