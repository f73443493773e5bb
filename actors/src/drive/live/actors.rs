//! The loops of the threads that run devices.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use lapwing_kernels::device::SlotPool;
use lapwing_kernels::graph::Graph;
use lapwing_traces::Clock;
use lapwing_traces::event::WaitMode;

use super::scheduler::SharedScheduler;
use super::throttle::Throttle;
use super::workers::{WorkerMessage, Workers};
use super::{Inbox, LiveDevice};
use crate::drive::modelled::{self, merge_parts};
use crate::drive::record::{Outgoing, WorkerTape};
use crate::drive::wait::{Cores, WaitKey, Waiter};
use crate::error::RunError;
use crate::message::{Chunk, Delivery, PartDone, Posted, SchedulerMessage};
use crate::worker::{Worker, WorkerEffect};
use lapwing_plan::DeviceId;

/// How an actor waits on its mailbox.
pub(super) struct Link {
    pub(super) mode: WaitMode,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) cores: Cores,
}

impl Link {
    /// To be made on the actor's thread.
    pub(super) fn waiter(&self) -> Waiter {
        Waiter::new(self.mode, Arc::clone(&self.clock), self.cores.clone())
    }
}

/// Kind of the waits after a stage: its ops, whatever their layer, and rows.
fn wait_after(delivery: &Delivery, graph: &Graph, device: usize) -> WaitKey {
    let (chunk, part) = (delivery.chunk(), &delivery.part().part);
    let nodes = chunk.stage().nodes.clone();
    let role = |node: usize| graph.nodes()[node].role;
    let mut op = DefaultHasher::new();
    (role(nodes.start), role(nodes.end - 1), nodes.len()).hash(&mut op);
    WaitKey::new(op.finish() as u32, part.row_count(&chunk.batch), device)
}

/// The worker of a device on its thread.
pub(super) struct LiveWorker {
    pub(super) id: DeviceId,
    pub(super) worker: Worker,
    pub(super) tape: WorkerTape,
    pub(super) device: LiveDevice,
    pub(super) throttle: Throttle,
    pub(super) inbox: Inbox<WorkerMessage>,
    pub(super) link: Link,
    /// Kind of the next wait.
    pub(super) wait: WaitKey,
    /// Whether what is received next waited while the device was busy.
    pub(super) queued: bool,
    pub(super) scheduler: SharedScheduler,
    pub(super) workers: Workers,
    pub(super) graph: Arc<Graph>,
    pub(super) slots: SlotPool,
}

impl LiveWorker {
    pub(super) fn run(mut self) -> Result<(), RunError> {
        let mut waiter = self.link.waiter();
        if self.device.time.is_some() {
            waiter.measure();
        }
        loop {
            let recorded = self.tape.is_on();
            let received = self.inbox.recv(&mut waiter, self.wait);
            self.queued &= matches!(received, Ok((_, None)));
            let effects = match received {
                Ok((WorkerMessage::Run(mut delivery), waited)) => {
                    self.tape.receive(&mut delivery, waited.filter(|_| recorded));
                    self.worker.on_delivery(delivery)
                }
                Ok((WorkerMessage::Nudge, waited)) => {
                    self.tape.nudged(waited.filter(|_| recorded));
                    // Before the worker looks: what changes from here on nudges it again.
                    self.workers.nudged(self.id);
                    self.worker.on_nudge()
                }
                Ok((WorkerMessage::Stop, _)) | Err(_) => return Ok(()),
            };
            self.carry_out(effects.into(), &mut waiter)?;
            self.tape.end();
        }
    }

    fn carry_out(
        &mut self,
        mut effects: VecDeque<WorkerEffect>,
        waiter: &mut Waiter,
    ) -> Result<(), RunError> {
        // What follows the first stage waited for it.
        let mut queued = self.queued;
        while let Some(effect) = effects.pop_front() {
            match effect {
                WorkerEffect::Run(delivery) => {
                    effects.extend(self.run_stage(delivery, queued, waiter));
                    queued = true;
                }
                WorkerEffect::Merge(chunk, parts) => effects.extend(self.merge(chunk, parts)),
                WorkerEffect::Send(device, mut delivery) => {
                    self.tape.forward(&mut delivery);
                    self.workers.send(device, delivery)?;
                }
                WorkerEffect::Nudge(device) => self.workers.nudge(device),
                WorkerEffect::Report(progress) => {
                    let Posted { message, sent } = self.tape.report(progress);
                    let posted = Posted { message: SchedulerMessage::Progress(message), sent };
                    let has_work = !effects.is_empty() || !self.inbox.is_empty();
                    match has_work {
                        true => self.scheduler.post(posted)?,
                        false => self.scheduler.tell(posted)?,
                    }
                }
                WorkerEffect::Emit(emission) => {
                    let Outgoing { sink, event } = self.tape.emit(emission);
                    sink.send(event);
                }
            }
        }
        Ok(())
    }

    fn run_stage(
        &mut self,
        delivery: Delivery,
        queued: bool,
        waiter: &mut Waiter,
    ) -> Vec<WorkerEffect> {
        self.tape.waiting(self.inbox.len() + self.worker.waiting());
        self.wait = wait_after(&delivery, &self.graph, self.id.0);
        let LiveDevice { device, time } = &mut self.device;
        let busy = self.link.cores.busy(device.threads());
        let result = match time {
            None => {
                self.tape.start(&delivery);
                let result = modelled::run(&mut **device, &delivery, &mut self.tape);
                drop(busy);
                result
            }
            Some(time) => {
                self.throttle.begin(queued);
                self.tape.start(&delivery);
                let (result, segments) =
                    modelled::run_modelled(&mut **device, &**time, &delivery, queued);
                drop(busy);
                self.throttle.wait(modelled::total(&segments), waiter);
                self.tape.play(&segments);
                result
            }
        };
        // Before anything is sent that may bring new work here.
        self.queued = !self.inbox.is_empty();
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
