//! The loops of a live engine's threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lapwing_kernels::device::SlotPool;
use lapwing_kernels::graph::Graph;
use lapwing_traces::{Nanos, Recorder};

use super::prepare::Lanes;
use super::throttle::Throttle;
use super::{Ending, LiveDevice, Mailbox, WorkerMessage};
use crate::drive::modelled::{self, merge_parts};
use crate::drive::record::{Outgoing, SchedulerTape, WorkerTape};
use crate::error::RunError;
use crate::message::{Chunk, Delivery, PartDone, Posted, SchedulerMessage, Shutdown};
use crate::scheduler::{Scheduler, SchedulerEffect};
use crate::worker::{Worker, WorkerEffect};

/// The scheduler on its thread.
pub(super) struct LiveScheduler {
    pub(super) scheduler: Scheduler,
    pub(super) tape: SchedulerTape,
    pub(super) inbox: flume::Receiver<Posted<SchedulerMessage>>,
    pub(super) workers: Vec<Mailbox<WorkerMessage>>,
    pub(super) lanes: Lanes,
    pub(super) recorder: Recorder,
    pub(super) ending: Arc<Ending>,
}

impl LiveScheduler {
    pub(super) fn run(mut self) -> Result<(), RunError> {
        while let Ok((posted, slept)) = receive(&self.inbox, || self.tape.sleeps()) {
            self.tape.begin(&posted, slept);
            match &posted.message {
                // Before the scheduler looks: a stream dropped from here on wakes it again.
                SchedulerMessage::Wake => self.ending.waking.store(false, Ordering::Release),
                SchedulerMessage::ActorDied(error) => {
                    let _ = self.ending.cause.set(error.clone());
                }
                SchedulerMessage::Shutdown(Shutdown::Now) => {
                    let _ = self.ending.cause.set(RunError::ShuttingDown);
                }
                _ => {}
            }
            let now = self.recorder.clock().now();
            for effect in self.scheduler.on(posted.message, now) {
                match effect {
                    SchedulerEffect::Send(device, mut delivery, hold) => {
                        self.tape.send(&mut delivery, hold);
                        self.workers[device.0].send(WorkerMessage::Run(delivery))?;
                    }
                    SchedulerEffect::Prepare(message) => {
                        let sent = self.tape.prepare();
                        let device = message.device;
                        let posted = Posted { message, sent };
                        self.lanes.send(device, posted)?;
                    }
                    SchedulerEffect::Emit(emission) => {
                        let Outgoing { sink, event } = self.tape.emit(emission);
                        sink.send(event);
                    }
                    SchedulerEffect::Note(note) => {
                        self.tape.note(note, self.scheduler.kv_page_bytes());
                    }
                    SchedulerEffect::Stop => {
                        self.tape.end(&self.scheduler);
                        let _ = self.ending.cause.set(RunError::ShuttingDown);
                        return Ok(());
                    }
                }
            }
            self.tape.end(&self.scheduler);
        }
        Ok(())
    }
}

/// The next message of a mailbox. `sleeps` tells the time before a sleep for it; that is returned
/// with the message.
fn receive<T>(
    inbox: &flume::Receiver<T>,
    sleeps: impl FnOnce() -> Option<Nanos>,
) -> Result<(T, Option<Nanos>), flume::RecvError> {
    if let Ok(message) = inbox.try_recv() {
        return Ok((message, None));
    }
    let since = sleeps();
    Ok((inbox.recv()?, since))
}

/// Tells every worker and preparation lane to end.
pub(super) fn stop(workers: &[Mailbox<WorkerMessage>], lanes: &Lanes) {
    lanes.stop();
    for worker in workers {
        worker.nudge(WorkerMessage::Stop);
    }
}

/// The worker of a device on its thread.
pub(super) struct LiveWorker {
    pub(super) worker: Worker,
    pub(super) tape: WorkerTape,
    pub(super) device: LiveDevice,
    pub(super) throttle: Throttle,
    pub(super) inbox: flume::Receiver<WorkerMessage>,
    pub(super) scheduler: Mailbox<Posted<SchedulerMessage>>,
    pub(super) workers: Vec<Mailbox<WorkerMessage>>,
    pub(super) graph: Arc<Graph>,
    pub(super) slots: SlotPool,
}

impl LiveWorker {
    pub(super) fn run(mut self) -> Result<(), RunError> {
        loop {
            let queued = !self.inbox.is_empty();
            let received = receive(&self.inbox, || self.tape.sleeps());
            let effects = match received {
                Ok((WorkerMessage::Run(mut delivery), slept)) => {
                    self.tape.receive(&mut delivery, slept);
                    self.worker.on_delivery(delivery)
                }
                Ok((WorkerMessage::Wake, _)) => self.worker.on_wake(),
                Ok((WorkerMessage::Stop, _)) | Err(_) => return Ok(()),
            };
            self.carry_out(effects.into(), queued)?;
            self.tape.end();
        }
    }

    /// `queued` tells whether the first stage that is run was waiting while the device was busy;
    /// those that follow were.
    fn carry_out(
        &mut self,
        mut effects: VecDeque<WorkerEffect>,
        mut queued: bool,
    ) -> Result<(), RunError> {
        while let Some(effect) = effects.pop_front() {
            match effect {
                WorkerEffect::Run(delivery) => {
                    effects.extend(self.run_stage(delivery, queued));
                    queued = true;
                }
                WorkerEffect::Merge(chunk, parts) => effects.extend(self.merge(chunk, parts)),
                WorkerEffect::Send(device, mut delivery) => {
                    self.tape.forward(&mut delivery);
                    self.workers[device.0].send(WorkerMessage::Run(delivery))?;
                }
                WorkerEffect::Wake(device) => self.workers[device.0].nudge(WorkerMessage::Wake),
                WorkerEffect::Report(progress) => {
                    let Posted { message, sent } = self.tape.report(progress);
                    let message = SchedulerMessage::Progress(message);
                    self.scheduler.send(Posted { message, sent })?;
                }
                WorkerEffect::Emit(emission) => {
                    let Outgoing { sink, event } = self.tape.emit(emission);
                    sink.send(event);
                }
            }
        }
        Ok(())
    }

    fn run_stage(&mut self, delivery: Delivery, queued: bool) -> Vec<WorkerEffect> {
        self.tape.waiting(self.inbox.len() + self.worker.waiting());
        let LiveDevice { device, time } = &mut self.device;
        let result = match time {
            None => {
                self.tape.start(&delivery);
                modelled::run(&mut **device, &delivery, &mut self.tape)
            }
            Some(time) => {
                self.throttle.begin(queued);
                self.tape.start(&delivery);
                let (result, segments) =
                    modelled::run_modelled(&mut **device, &**time, &delivery, queued);
                self.throttle.wait(modelled::total(&segments));
                self.tape.play(&segments);
                result
            }
        };
        let sent = self.tape.finish(&delivery, result.is_ok());
        self.worker.on_done(delivery, result, sent)
    }

    fn merge(&mut self, chunk: Box<Chunk>, parts: Vec<PartDone>) -> Vec<WorkerEffect> {
        self.tape.merge_begins(&chunk, &parts);
        let merged = merge_parts(&chunk, parts, &self.graph, &self.slots);
        if let Ok((_, bytes)) = &merged {
            self.tape.merge_ends(*bytes);
        }
        self.worker.on_merged(chunk, merged.map(|(tensors, _)| tensors))
    }
}
