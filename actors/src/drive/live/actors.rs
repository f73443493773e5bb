//! The loops of a live engine's threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lapwing_kernels::device::{Device, Work};
use lapwing_traces::{Nanos, Recorder};

use super::{Ending, Mailbox, WorkerMessage};
use crate::drive::record::{Outgoing, SchedulerTape, WorkerTape};
use crate::error::RunError;
use crate::message::{Chunk, Posted, SchedulerMessage, Shutdown};
use crate::scheduler::{Scheduler, SchedulerEffect};
use crate::worker::{Worker, WorkerEffect};

/// The scheduler on its thread.
pub(super) struct LiveScheduler {
    pub(super) scheduler: Scheduler,
    pub(super) tape: SchedulerTape,
    pub(super) inbox: flume::Receiver<Posted<SchedulerMessage>>,
    pub(super) workers: Vec<Mailbox<WorkerMessage>>,
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
                    SchedulerEffect::Send(device, mut chunk, hold) => {
                        self.tape.send(&mut chunk, hold);
                        self.workers[device.0].send(WorkerMessage::Chunk(chunk))?;
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

/// Tells every worker to end.
pub(super) fn stop(workers: &[Mailbox<WorkerMessage>]) {
    for worker in workers {
        worker.nudge(WorkerMessage::Stop);
    }
}

/// The worker of a device on its thread.
pub(super) struct LiveWorker {
    pub(super) worker: Worker,
    pub(super) tape: WorkerTape,
    pub(super) device: Box<dyn Device>,
    pub(super) inbox: flume::Receiver<WorkerMessage>,
    pub(super) scheduler: Mailbox<Posted<SchedulerMessage>>,
    pub(super) workers: Vec<Mailbox<WorkerMessage>>,
}

impl LiveWorker {
    pub(super) fn run(mut self) -> Result<(), RunError> {
        while let Ok((WorkerMessage::Chunk(mut chunk), slept)) =
            receive(&self.inbox, || self.tape.sleeps())
        {
            self.tape.receive(&mut chunk, slept);
            let effects = self.worker.on_chunk(chunk);
            self.carry_out(effects.into())?;
            self.tape.end();
        }
        Ok(())
    }

    fn carry_out(&mut self, mut effects: VecDeque<WorkerEffect>) -> Result<(), RunError> {
        while let Some(effect) = effects.pop_front() {
            match effect {
                WorkerEffect::Run(chunk) => effects.extend(self.run_stage(chunk)),
                WorkerEffect::Forward(device, mut chunk) => {
                    self.tape.forward(&mut chunk);
                    self.workers[device.0].send(WorkerMessage::Chunk(chunk))?;
                }
                WorkerEffect::Report(progress) => {
                    let Posted { message, sent } = self.tape.report(progress);
                    let message = SchedulerMessage::Progress(message);
                    self.scheduler.send(Posted { message, sent })?;
                }
                WorkerEffect::Emit(emission) => {
                    let Outgoing { sink, event } = self.tape.emit(emission);
                    sink.send(event);
                }
                WorkerEffect::Recycle(tensor) => self.device.recycle(tensor),
            }
        }
        Ok(())
    }

    fn run_stage(&mut self, mut chunk: Box<Chunk>) -> Vec<WorkerEffect> {
        self.tape.waiting(self.inbox.len() + self.worker.waiting());
        self.tape.start(&chunk);
        let nodes = chunk.stage().nodes.clone();
        let Chunk { batch, tensors, trace, .. } = &mut *chunk;
        let entered = trace.enter();
        let result = self.device.run(Work { nodes, batch, tensors, observer: &mut self.tape });
        drop(entered);
        self.tape.finish(&chunk, result.is_ok());
        self.worker.on_done(chunk, result)
    }
}
