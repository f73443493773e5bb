//! The simulated driver: the same state machines in virtual time, on one thread. Events are
//! ordered by (time, number), so that two runs with the same inputs are identical.

use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Memory};
use std::time::Duration;

use lapwing_kernels::device::{Device, Preparer, SlotPool, TensorSet};
use lapwing_kernels::graph::{Graph, ValueId};
use lapwing_traces::{Clock, Nanos, Recorder, RecorderConfig};

use super::modelled;
use super::record::{CallerTape, Outgoing, PrepareTape, SchedulerTape, WorkerTape};
use crate::message::{
    Chunk, GraphsPrepared, PartDone, Posted, PrepareGraphs, SchedulerMessage, Sent,
};
use crate::plan::DeviceId;
use crate::plan::time::TimeModel;
use crate::scheduler::{Scheduler, SchedulerEffect};
use crate::worker::{Worker, WorkerEffect};

mod events;
mod noise;
mod sharing;
mod surroundings;

use events::{Event, What};
use sharing::{Due, Ran, Sharing};
pub use surroundings::{DeviceUsage, Noise, Renderer, Surroundings, Usage};

/// A device in virtual time: true values from `device`, modelled time from `time`.
pub struct SimulatedDevice {
    /// Computes values.
    pub device: Box<dyn Device>,
    /// Says how long it took.
    pub time: Arc<dyn TimeModel>,
}

/// What a simulated engine is made of.
pub struct SimulationParts {
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Devices, by their number.
    pub devices: Vec<SimulatedDevice>,
    /// The model's ops.
    pub graph: Arc<Graph>,
    /// Where results lie.
    pub slots: SlotPool,
    /// Bytes per second at which parts are put together; infinite costs nothing.
    pub copy_rate: f64,
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
    /// In the order in which they were registered.
    actors: Vec<Actor>,
    /// Where the device of each number is among them.
    places: Vec<usize>,
    graph: Arc<Graph>,
    slots: SlotPool,
    copy_rate: f64,
    events: BinaryHeap<Event>,
    next_event: u64,
    /// Events that are no frames.
    work: usize,
    sharing: Option<Sharing>,
    stopped: bool,
}

struct Actor {
    worker: Worker,
    tape: WorkerTape,
    device: SimulatedDevice,
    /// Its preparation lane.
    lane: Option<(Box<dyn Preparer>, PrepareTape)>,
}

impl Simulation {
    /// An engine at time 0.
    pub fn new(parts: SimulationParts) -> Simulation {
        let order: Vec<usize> = (0..parts.devices.len()).collect();
        Simulation::with_actors(parts, &order)
    }

    /// An engine whose actors are registered in the order of these numbers.
    fn with_actors(parts: SimulationParts, order: &[usize]) -> Simulation {
        let SimulationParts { scheduler, devices, graph, slots, copy_rate } = parts;
        let clock = Arc::new(VirtualClock::default());
        let recorder =
            Recorder::new(Arc::clone(&clock) as Arc<dyn Clock>, RecorderConfig::default());
        recorder.set_meta("clock", "virtual");
        let (caller, tape) = (CallerTape::new(&recorder), SchedulerTape::new(&recorder));
        let actor = |(number, device): (usize, SimulatedDevice)| {
            let name = device.device.name().to_owned();
            let lane = device.device.preparer();
            Actor {
                worker: Worker::new(DeviceId(number), name.clone(), graph.output()),
                tape: WorkerTape::new(&recorder, &name, &graph),
                lane: lane.map(|preparer| (preparer, PrepareTape::new(&recorder, &name))),
                device,
            }
        };
        let mut devices: Vec<Option<SimulatedDevice>> = devices.into_iter().map(Some).collect();
        let mut places = vec![0; devices.len()];
        let mut actors = Vec::with_capacity(devices.len());
        for number in order {
            if let Some(device) = devices[*number].take() {
                places[*number] = actors.len();
                actors.push(actor((*number, device)));
            }
        }
        Simulation {
            clock,
            recorder,
            caller,
            tape,
            scheduler,
            actors,
            places,
            graph,
            slots,
            copy_rate,
            events: BinaryHeap::new(),
            next_event: 0,
            work: 0,
            sharing: None,
            stopped: false,
        }
    }

    /// As [`new`](Simulation::new), with devices that share something or are disturbed.
    pub fn with_surroundings(parts: SimulationParts, around: Surroundings) -> Simulation {
        let order: Vec<usize> = (0..parts.devices.len()).collect();
        Simulation::registered(parts, around, &order)
    }

    /// As [`with_surroundings`](Simulation::with_surroundings), with the devices' actors registered
    /// in the order of these numbers, of which each must be there once. It is the order of the
    /// recording's lanes and of [`usage`](Simulation::usage); nothing else depends on it.
    pub fn registered(
        parts: SimulationParts,
        mut around: Surroundings,
        order: &[usize],
    ) -> Simulation {
        let mut simulation = Simulation::with_actors(parts, order);
        if let Some(renderer) = &mut around.renderer {
            renderer.device = DeviceId(simulation.places[renderer.device.0]);
        }
        let names = simulation.actors.iter().map(|actor| actor.worker.device().to_owned());
        let names: Vec<String> = names.collect();
        let renders = around.renderer.is_some();
        simulation.sharing = Some(Sharing::new(around, &names));
        if renders {
            simulation.push(Nanos(0), What::Due(Due::Frame));
        }
        simulation
    }

    /// What the devices did until now; `None` if they share nothing.
    pub fn usage(&self) -> Option<&Usage> {
        self.sharing.as_ref().map(Sharing::usage)
    }

    /// Virtual time.
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Time of the next event.
    pub fn next_at(&self) -> Option<Nanos> {
        self.events.peek().map(|event| event.at)
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
        self.work -= usize::from(event.what.is_work());
        match event.what {
            What::Outside(message) => {
                let posted = self.caller.post(*message);
                self.on_scheduler(posted);
            }
            What::Scheduler(message) => self.on_scheduler(*message),
            What::Arrived(to, mut delivery) => {
                let Actor { worker, tape, .. } = &mut self.actors[to];
                tape.receive(&mut delivery, None);
                let effects = worker.on_delivery(delivery);
                tape.waiting(worker.waiting());
                self.carry_out(to, effects, false);
            }
            What::Nudged(to) => {
                let effects = self.actors[to].worker.on_nudge();
                self.carry_out(to, effects, false);
            }
            What::Ran(by, ran) => self.on_ran(by, *ran),
            What::Due(due) => self.on_due(due),
            What::Merged(by, chunk, merged) => {
                let effects = self.actors[by].worker.on_merged(chunk, merged);
                self.carry_out(by, effects, true);
            }
            What::Prepared(by, prepared) => {
                let message = SchedulerMessage::Prepared(prepared);
                let posted = match &mut self.actors[by].lane {
                    Some((_, tape)) => tape.end(message),
                    None => Posted::unrecorded(message),
                };
                self.on_scheduler(posted);
            }
        }
        true
    }

    /// Runs until nothing is left to happen; returns the time.
    pub fn run(&mut self) -> Nanos {
        while self.step() {}
        self.now()
    }

    fn on_ran(&mut self, by: usize, ran: Ran) {
        let Ran { delivery, result, segments } = ran;
        let Actor { worker, tape, .. } = &mut self.actors[by];
        tape.play(&segments);
        let sent = tape.finish(&delivery, result.is_ok());
        let effects = worker.on_done(delivery, result, sent);
        self.carry_out(by, effects, true);
    }

    /// Something happens to devices that share.
    fn on_due(&mut self, due: Due) {
        let now = self.now();
        let Some(sharing) = &mut self.sharing else { return };
        let mut ran = None;
        match due {
            Due::Tick(by, tick) => ran = sharing.tick(now, by, tick).map(|ran| (by, ran)),
            Due::Drawn => sharing.drawn(now),
            // Without work the renderer would go on for ever.
            Due::Frame if self.work == 0 => return,
            Due::Frame => {
                if let Some(next) = sharing.frame(now) {
                    self.push(next, What::Due(Due::Frame));
                }
            }
        }
        self.share();
        if let Some((by, ran)) = ran {
            self.on_ran(by, ran);
        }
    }

    /// Draws what is due, and shares bandwidth anew.
    fn share(&mut self) {
        let now = self.now();
        let Some(sharing) = &mut self.sharing else { return };
        let drawn = sharing.draw(now);
        let due = sharing.share(now);
        if let Some(at) = drawn {
            self.push(at, What::Due(Due::Drawn));
        }
        for (at, due) in due {
            self.push(at, What::Due(due));
        }
    }

    /// A device begins a run, which takes as long as its segments do by its model, or longer where
    /// it has to share.
    fn begin(&mut self, by: usize, ran: Ran) {
        let now = self.now();
        match &mut self.sharing {
            None => {
                let end = now + modelled::total(&ran.segments);
                self.push(end, What::Ran(by, Box::new(ran)));
            }
            Some(sharing) => {
                sharing.start(now, by, ran);
                sharing.hold_for_frame(by);
                self.share();
            }
        }
    }

    /// Puts parts together; with the result, how long that takes.
    fn merge(
        &mut self,
        chunk: &Chunk,
        parts: Vec<PartDone>,
    ) -> (Result<TensorSet, ValueId>, u64, Duration) {
        let shapes_only = self.sharing.as_ref().is_some_and(|s| s.around().shapes_only);
        let merged = match shapes_only {
            true => modelled::merge_shapes(chunk, parts, &self.graph),
            false => modelled::merge_parts(chunk, parts, &self.graph, &self.slots),
        };
        let bytes = merged.as_ref().map_or(0, |(_, bytes)| *bytes);
        let time = Duration::from_secs_f64(bytes as f64 / self.copy_rate.max(1.0));
        if let Some(sharing) = &mut self.sharing {
            sharing.merged(bytes, time);
        }
        (merged.map(|(tensors, _)| tensors), bytes, time)
    }

    fn push(&mut self, at: Nanos, what: What) {
        self.work += usize::from(what.is_work());
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
                SchedulerEffect::Send(device, mut delivery, hold) => {
                    self.tape.send(&mut delivery, hold);
                    self.push(self.now(), What::Arrived(self.places[device.0], delivery));
                }
                SchedulerEffect::Nudge(device) => {
                    self.push(self.now(), What::Nudged(self.places[device.0]));
                }
                SchedulerEffect::Prepare(asked) => {
                    let sent = self.tape.prepare();
                    self.prepare(asked, sent);
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

    /// A device's lane makes graphs ready.
    fn prepare(&mut self, asked: PrepareGraphs, sent: Sent) {
        let by = self.places[asked.device.0];
        let made_before = self.sharing.as_ref().is_some_and(|s| s.around().prepared);
        let Actor { device, lane, .. } = &mut self.actors[by];
        let (result, time) = match lane {
            Some((preparer, tape)) => {
                tape.begin(sent, None);
                let result = preparer.prepare(&asked.keys, &asked.keep, tape);
                let made = result.iter().flat_map(|prepared| &prepared.made);
                let time = made.map(|key| device.time.prepare_time(key)).sum();
                (result, if made_before { Duration::ZERO } else { time })
            }
            None => {
                let prepared = Box::new(GraphsPrepared::without_lane(asked));
                self.push(self.now(), What::Prepared(by, prepared));
                return;
            }
        };
        let prepared = Box::new(GraphsPrepared { asked, result });
        self.push(self.now() + time, What::Prepared(by, prepared));
    }

    fn carry_out(&mut self, actor: usize, effects: Vec<WorkerEffect>, queued: bool) {
        for effect in effects {
            let Actor { worker, tape, device, .. } = &mut self.actors[actor];
            match effect {
                WorkerEffect::Run(delivery) => {
                    tape.waiting(worker.waiting());
                    tape.start(&delivery);
                    let SimulatedDevice { device, time } = device;
                    let (result, segments) =
                        modelled::run_modelled(&mut **device, &**time, &delivery, queued);
                    self.begin(actor, Ran { delivery, result, segments });
                }
                WorkerEffect::Merge(chunk, parts) => {
                    tape.merge_begins(&chunk, &parts);
                    let (tensors, bytes, time) = self.merge(&chunk, parts);
                    self.actors[actor].tape.merge_ends(bytes);
                    self.push(self.now() + time, What::Merged(actor, chunk, tensors));
                    // Its span ends when the parts are together.
                    return;
                }
                WorkerEffect::Send(to, mut delivery) => {
                    tape.forward(&mut delivery);
                    let around = self.sharing.as_ref().map(Sharing::around);
                    let to = self.places[to.0];
                    let way = around.filter(|_| to != actor).map(|around| around.hand_over);
                    self.push(self.now() + way.unwrap_or_default(), What::Arrived(to, delivery));
                }
                WorkerEffect::Nudge(device) => {
                    self.push(self.now(), What::Nudged(self.places[device.0]));
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
            }
        }
        self.actors[actor].tape.end();
    }
}
