//! What the state machines want done, done in virtual time.

use std::time::Duration;

use super::events::What;
use super::merge::merge_shapes;
use super::sharing::{Due, Ran, Sharing};
use super::{Actor, SimulatedDevice, Simulation};
use crate::drive::modelled;
use crate::message::{
    Chunk, GraphsPrepared, PartDone, Posted, PrepareGraphs, SchedulerMessage, Sent,
};
use crate::worker::WorkerEffect;

impl Simulation {
    /// A device has ended a run.
    pub(super) fn on_ran(&mut self, by: usize, ran: Ran) {
        let Ran { delivery, result, segments } = ran;
        let Actor { worker, tape, .. } = &mut self.actors[by];
        tape.play(&segments);
        let sent = tape.finish(&delivery, result.is_ok());
        let effects = worker.on_done(delivery, result, sent);
        self.carry_out(by, effects, true);
    }

    /// Something happens to devices that share.
    pub(super) fn on_due(&mut self, due: Due) {
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

    /// Puts parts together on a device.
    fn merge(&mut self, by: usize, chunk: Box<Chunk>, parts: Vec<PartDone>) {
        self.actors[by].merging = true;
        self.actors[by].tape.merge_begins(&chunk, &parts);
        let shapes_only = self.sharing.as_ref().is_some_and(|s| s.around().shapes_only);
        let merged = match shapes_only {
            true => merge_shapes(&chunk, parts, &self.graph),
            false => modelled::merge_parts(&chunk, parts, &self.graph, &self.slots),
        };
        let bytes = merged.as_ref().map_or(0, |(_, bytes)| *bytes);
        let time = Duration::from_secs_f64(bytes as f64 / self.copy_rate.max(1.0));
        let now = self.now();
        if let Some(sharing) = &mut self.sharing {
            sharing.merge(now, by, bytes, time);
        }
        self.actors[by].tape.merge_ends(bytes);
        let tensors = merged.map(|(tensors, _)| tensors);
        self.push(now + time, What::Merged(by, chunk, tensors));
    }

    /// A device's lane makes graphs ready.
    pub(super) fn prepare(&mut self, asked: PrepareGraphs, sent: Sent) {
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

    /// Does what a worker wants done; `queued` tells whether its device was busy until now.
    pub(super) fn carry_out(&mut self, actor: usize, effects: Vec<WorkerEffect>, queued: bool) {
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
                    self.merge(actor, chunk, parts);
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
        // Something may arrive while parts are put together, whose span goes on.
        if !self.actors[actor].merging {
            self.actors[actor].tape.end();
        }
    }
}
