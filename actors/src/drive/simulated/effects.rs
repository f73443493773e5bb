//! Carries out the effects of the state machines in virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use lapwing_kernels::device::{Completed, RunId};

use super::events::What;
use super::merge::merge_shapes;
use super::sharing::{Due, Ran, Sharing};
use super::{Actor, SimulatedDevice, Simulation};
use crate::chunk::Begun;
use crate::decide::decide;
use crate::drive::modelled::{self, StepLog, segments_of};
use crate::message::{
    Chunk, Delivery, GraphsPrepared, PartDone, PrepareGraphs, SchedulerMessage, Traced,
};
use crate::worker::WorkerEffect;

/// Delay before the next poll of a device whose run is late: its modelled time is over, but the
/// device has not completed it.
const LATE_POLL: Duration = Duration::from_micros(10);

impl Simulation {
    /// Handles the modelled end of a device's run.
    pub(super) fn on_ran(&mut self, by: usize, ran: Ran) {
        let now = self.now();
        let Actor { worker, trace, device, completed, running, begun, .. } = &mut self.actors[by];
        let Some(Completed { result, .. }) =
            completed.pop_front().or_else(|| device.device.poll(&mut ()))
        else {
            // The modelled time is over, but the device has not completed the run.
            self.push(now + LATE_POLL, What::Ran(by, Box::new(ran)));
            return;
        };
        let Ran { mut delivery, segments } = ran;
        *running = false;
        if let Some(begun) = begun.take().filter(|_| result.is_ok()) {
            begun.end(&delivery, now);
        }
        trace.play(&segments);
        trace.finish(&mut delivery, result.is_ok());
        let effects = worker.on_done(delivery, result);
        self.carry_out(by, effects, true);
        self.begin_queued(by);
    }

    /// Handles an event of devices that share resources.
    pub(super) fn on_due(&mut self, due: Due) {
        let now = self.now();
        let Some(sharing) = &mut self.sharing else { return };
        let mut ran = None;
        match due {
            Due::Tick(by, tick) => ran = sharing.tick(now, by, tick).map(|ran| (by, ran)),
            Due::Drawn => sharing.drawn(now),
            // Without this check the renderer would draw for ever.
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

    /// Draws a due frame, and divides the bandwidth again.
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

    /// Begins the next run of a device's queue if the device is free.
    fn begin_queued(&mut self, by: usize) {
        if self.actors[by].running {
            return;
        }
        if let Some(ran) = self.actors[by].queue.pop_front() {
            self.begin(by, ran);
        }
    }

    /// Submits a delivery to a device. It runs after all earlier submissions.
    fn submit(&mut self, by: usize, delivery: Traced<Delivery>, queued: bool) {
        let Actor { worker, trace, device, completed, queue, running, next_run, .. } =
            &mut self.actors[by];
        trace.waiting(worker.waiting());
        let SimulatedDevice { device, time } = device;
        let Some(work) = delivery.work(device.info().memory) else { return };
        let run = *next_run;
        *next_run = RunId(run.0 + 1);
        let mut steps = StepLog::default();
        device.submit(run, work);
        while let Some(done) = device.poll(&mut steps) {
            completed.push_back(done);
        }
        let waits = *running || !queue.is_empty();
        let graph = &self.graphs[delivery.chunk().route.model.0];
        let segments = segments_of(&**time, &delivery, queued || waits, graph, steps.0);
        let ran = Ran { delivery, segments };
        match waits {
            true => queue.push_back(ran),
            false => self.begin(by, ran),
        }
    }

    /// Begins a run on a device. It takes the modelled time of its segments, or longer under
    /// contention.
    fn begin(&mut self, by: usize, ran: Ran) {
        let now = self.now();
        self.actors[by].running = true;
        self.actors[by].begun = Begun::new(&ran.delivery, now);
        self.actors[by].trace.start(&ran.delivery, None);
        match &mut self.sharing {
            None => {
                let time = modelled::total(&ran.segments);
                let end = now + time;
                self.busy += time;
                self.push(end, What::Ran(by, Box::new(ran)));
            }
            Some(sharing) => {
                sharing.start(now, by, ran);
                sharing.hold_for_frame(by);
                self.share();
            }
        }
    }

    /// Merges parts on a device.
    fn merge(&mut self, by: usize, chunk: Traced<Box<Chunk>>, parts: Vec<PartDone>) {
        self.actors[by].merging = true;
        self.actors[by].trace.merge_begins(&chunk, &parts);
        let shapes_only = self.sharing.as_ref().is_some_and(|s| s.env().shapes_only);
        let graph = &self.graphs[chunk.route.model.0];
        let merged = match shapes_only {
            true => merge_shapes(&chunk, parts, graph),
            false => modelled::merge_parts(&chunk, parts, graph, &self.slots),
        };
        let bytes = merged.as_ref().map_or(0, |(_, bytes)| *bytes);
        let time = Duration::from_secs_f64(bytes as f64 / self.copy_rate.max(1.0));
        let now = self.now();
        if let Some(sharing) = &mut self.sharing {
            sharing.merge(now, by, bytes, time);
        }
        self.actors[by].trace.merge_ends(bytes);
        let tensors = merged.map(|(tensors, _)| tensors);
        self.push(now + time, What::Merged(by, chunk, tensors));
    }

    /// Prepares graphs on a device's lane.
    pub(super) fn prepare(&mut self, asked: Traced<PrepareGraphs>) {
        let Traced { message: asked, context } = asked;
        let by = self.places[asked.device.0];
        let made_before = self.sharing.as_ref().is_some_and(|s| s.env().prepared);
        let Actor { device, lane, .. } = &mut self.actors[by];
        let (result, time) = match lane {
            Some((preparer, trace)) => {
                trace.begin(context, None);
                let result = preparer.prepare(&asked.keys, &asked.keep, trace);
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

    /// Carries out a worker's effects; `queued` is set if its device was busy until now.
    pub(super) fn carry_out(&mut self, actor: usize, effects: Vec<WorkerEffect>, queued: bool) {
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            let Actor { worker, trace, .. } = &mut self.actors[actor];
            match effect {
                WorkerEffect::Submit(delivery) => self.submit(actor, delivery, queued),
                WorkerEffect::Decide(mut chunk) => {
                    trace.decide_begins(&chunk);
                    let decided = decide(&mut chunk, &self.slots);
                    let more = worker.on_decided(chunk, decided);
                    more.into_iter().rev().for_each(|effect| effects.push_front(effect));
                }
                WorkerEffect::Merge(chunk, parts) => {
                    self.merge(actor, chunk, parts);
                }
                WorkerEffect::Send(to, mut delivery) => {
                    trace.forward(&mut delivery);
                    let env = self.sharing.as_ref().map(Sharing::env);
                    let to = self.places[to.0];
                    // The run's synchronisation already includes the message to the host.
                    let decides = delivery.chunk().stage().decides();
                    let env = env.filter(|_| to != actor && !decides);
                    let way = env.map(|env| env.hand_over);
                    self.push(self.now() + way.unwrap_or_default(), What::Arrived(to, delivery));
                }
                WorkerEffect::Nudge(device) => {
                    self.push(self.now(), What::Nudged(self.places[device.0]));
                }
                WorkerEffect::Report(progress) => {
                    let posted = trace.report(progress).map(SchedulerMessage::Progress);
                    let posted = Box::new(posted);
                    self.push(self.now(), What::Scheduler(posted));
                }
                WorkerEffect::Emit(emission) => {
                    let outgoing = trace.emit(emission);
                    self.deliver(outgoing);
                }
            }
        }
        // A message may arrive during a merge, whose span must stay open.
        if !self.actors[actor].merging {
            self.actors[actor].trace.end();
        }
    }
}
