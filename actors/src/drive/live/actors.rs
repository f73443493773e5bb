//! The worker loop of each device's thread.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use lapwing_kernels::device::{Completed, RunId, SlotPool, Stamps};
use lapwing_kernels::graph::Graph;
use lapwing_traces::{Clock, Nanos};
use tracing::Span;

use super::device::LiveDevice;
use super::running::{Ended, Running};
use super::scheduler::SharedScheduler;
use super::spans;
use super::throttle::Throttle;
use super::workers::{WorkerMessage, Workers};
use crate::chunk::Begun;
use crate::decide::decide;
use crate::drive::mailbox::{Closed, Inbox};
use crate::drive::modelled::{StepLog, merge_parts, segments_of, total};
use crate::drive::record::{Outgoing, WorkerTrace};
use crate::drive::wait::{Cores, LinkMode, WaitKey, WaitRecord, Waiter};
use crate::error::RunError;
use crate::message::{Chunk, Delivery, PartDone, SchedulerMessage, Traced};
use crate::worker::{Worker, WorkerEffect};
use lapwing_plan::DeviceId;

/// How an actor waits on its mailbox.
pub(super) struct Link {
    pub(super) mode: LinkMode,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) cores: Cores,
}

impl Link {
    /// Makes the waiter. Call it on the actor's own thread.
    pub(super) fn waiter(&self) -> Waiter {
        Waiter::new(self.mode, Arc::clone(&self.clock), self.cores.clone())
    }
}

/// The key that predicts the wait after a stage: its ops, independent of the layer, and its rows.
fn wait_after(delivery: &Delivery, graph: &Graph, device: usize) -> WaitKey {
    let (chunk, part) = (delivery.chunk(), &delivery.part().part);
    let nodes = chunk.stage().nodes.clone();
    let role = |node: usize| graph.nodes().get(node).map_or("", |node| node.role);
    let mut op = DefaultHasher::new();
    (role(nodes.start), role(nodes.end.saturating_sub(1)), nodes.len()).hash(&mut op);
    WaitKey::new(op.finish() as u32, part.row_count(chunk.batch()), device)
}

/// The worker of a device on its thread.
pub(super) struct LiveWorker {
    pub(super) id: DeviceId,
    pub(super) worker: Worker,
    pub(super) trace: WorkerTrace,
    pub(super) device: LiveDevice,
    pub(super) throttle: Throttle,
    pub(super) inbox: Inbox<WorkerMessage>,
    pub(super) link: Link,
    /// Prediction key of the next wait.
    pub(super) wait: WaitKey,
    /// Whether the next delivery has waited while the device was busy.
    pub(super) queued: bool,
    /// Submitted runs, in order of submission.
    pub(super) running: VecDeque<Running>,
    /// On a throttled device: the completed run that is held back, and its modelled end.
    pub(super) held: Option<(Nanos, Ended)>,
    pub(super) next_run: RunId,
    /// Time at which a device with a queue completed its latest run.
    pub(super) free: Nanos,
    pub(super) scheduler: SharedScheduler,
    pub(super) workers: Workers,
    pub(super) graphs: Vec<Arc<Graph>>,
    pub(super) slots: SlotPool,
}

impl LiveWorker {
    pub(super) fn run(mut self) -> Result<(), RunError> {
        let _pinned = self.device.pin_thread();
        let mut waiter = self.link.waiter().with_probe(self.device.device.completion_probe());
        if self.device.time.is_some() {
            waiter.measure();
        }
        loop {
            let recorded = self.trace.is_on();
            let effects = match self.receive(&mut waiter) {
                Ok(Some((WorkerMessage::Run(mut delivery), waited))) => {
                    self.trace.receive(&mut delivery, waited.filter(|_| recorded));
                    self.worker.on_delivery(delivery)
                }
                Ok(Some((WorkerMessage::Nudge, waited))) => {
                    self.trace.nudged(waited.filter(|_| recorded));
                    // Before the worker checks its inbox: any later change nudges it again.
                    self.workers.nudged(self.id);
                    self.worker.on_nudge()
                }
                Ok(Some((WorkerMessage::Done, waited))) => {
                    self.trace.nudged(waited.filter(|_| recorded));
                    // Before the device is polled: any later completion is reported again.
                    self.workers.done(self.id);
                    Vec::new()
                }
                // The modelled end of the run that is held back.
                Ok(None) => Vec::new(),
                Ok(Some((WorkerMessage::Stop, _))) | Err(Closed) => return Ok(()),
            };
            self.carry_out(effects.into())?;
            self.trace.end();
        }
    }

    /// The next message, with a record of the wait. `None` at the modelled end of a run that is held
    /// back: until then the device is busy, and its worker does not wait.
    fn receive(
        &mut self,
        waiter: &mut Waiter,
    ) -> Result<Option<(WorkerMessage, Option<WaitRecord>)>, Closed> {
        if let Some((end, _)) = &self.held {
            let received = self.inbox.recv_until(waiter, *end)?;
            return Ok(received.map(|message| (message, None)));
        }
        waiter.set_probing(!self.running.is_empty());
        let received = self.inbox.recv(waiter, self.wait)?;
        self.queued &= received.1.is_none();
        Ok(Some(received))
    }

    /// Carries out the worker's effects and their consequences until the device has no completed run
    /// left.
    fn carry_out(&mut self, mut effects: VecDeque<WorkerEffect>) -> Result<(), RunError> {
        // Every later stage has waited for the first one.
        let mut queued = self.queued;
        loop {
            let Some(effect) = effects.pop_front() else {
                match self.poll() {
                    Some(more) => effects.extend(more),
                    None => return Ok(()),
                }
                continue;
            };
            match effect {
                WorkerEffect::Submit(delivery) => {
                    self.submit(delivery, queued);
                    queued = true;
                    // A device that computes on this thread has the result now.
                    effects.extend(self.poll().into_iter().flatten());
                }
                WorkerEffect::Merge(chunk, parts) => effects.extend(self.merge(chunk, parts)),
                WorkerEffect::Decide(mut chunk) => {
                    self.trace.decide_begins(&chunk);
                    let sampling = spans::sample(&chunk, self.worker.device());
                    let decided = decide(&mut chunk, &self.slots);
                    spans::decided(&chunk, &decided);
                    drop(sampling);
                    let more = self.worker.on_decided(chunk, decided);
                    more.into_iter().rev().for_each(|effect| effects.push_front(effect));
                }
                WorkerEffect::Send(device, mut delivery) => {
                    self.trace.forward(&mut delivery);
                    self.workers.send(device, delivery)?;
                }
                WorkerEffect::Nudge(device) => self.workers.nudge(device),
                WorkerEffect::Report(progress) => {
                    let posted = self.trace.report(progress).map(SchedulerMessage::Progress);
                    let has_work = !effects.is_empty() || !self.inbox.is_empty();
                    match has_work {
                        true => self.scheduler.post(posted)?,
                        false => self.scheduler.tell(posted)?,
                    }
                }
                WorkerEffect::Emit(emission) => {
                    let Outgoing { sink, event } = self.trace.emit(emission);
                    sink.send(event);
                }
            }
        }
    }

    fn submit(&mut self, delivery: Traced<Delivery>, queued: bool) {
        self.trace.waiting(self.inbox.len() + self.worker.waiting());
        let graph = &self.graphs[delivery.chunk().route.model.0];
        self.wait = wait_after(&delivery, graph, self.id.0);
        let Some(work) = delivery.work(self.device.device.info().memory) else { return };
        let run = self.next_run;
        self.next_run = RunId(run.0 + 1);
        let submitted = self.link.clock.now();
        self.device.device.submit(run, work);
        let (begun, timed, span) = (None, None, Span::none());
        self.running.push_back(Running { run, delivery, submitted, begun, timed, queued, span });
    }

    /// Handles the next completed run, if there is one, and returns the worker's effects.
    fn poll(&mut self) -> Option<Vec<WorkerEffect>> {
        let now = self.link.clock.now();
        let ended = match self.held.take_if(|(end, _)| *end <= now) {
            Some((_, ended)) => ended,
            None if self.held.is_some() => return None,
            None => self.poll_device()?,
        };
        let Ended { mut delivery, submitted, result, stamps, timed, segments, span } = ended;
        if let Some(timed) = timed.filter(|_| result.is_ok()) {
            timed.end(&delivery, self.link.clock.now());
        }
        self.trace.play(&segments);
        if let Some(Stamps { begin, end }) = stamps {
            self.trace.stamped(submitted + begin, submitted + end);
        }
        // Checked before any message is sent that may bring new work here.
        self.queued = !self.inbox.is_empty() || self.worker.waiting() > 0;
        self.trace.finish(&mut delivery, result.is_ok());
        let modelled = self.device.time.is_some().then(|| total(&segments));
        spans::end_stage(&span, modelled, result.as_ref().err());
        drop(span);
        if self.device.device.info().depth > 1 {
            self.free = self.link.clock.now();
        }
        Some(self.worker.on_done(delivery, result))
    }

    /// The next run that the device has completed. The run of a throttled device is held back until its
    /// modelled end.
    fn poll_device(&mut self) -> Option<Ended> {
        let front = self.running.front_mut()?;
        let is_beside = self.device.runs_beside_its_worker();
        let LiveDevice { device, time, .. } = &mut self.device;
        if front.begun.is_none() {
            front.begun = Some(self.link.cores.busy(device.threads()));
            if time.is_some() {
                self.throttle.begin(front.queued);
            }
            // A queue begins a run when it is submitted, or when the previous run has ended.
            let since = (device.info().depth > 1).then(|| front.submitted.max(self.free));
            self.trace.start(&front.delivery, since);
            let now = || self.link.clock.now();
            front.timed = Begun::new(&front.delivery, since.unwrap_or_else(now));
            let graph = &self.graphs[front.delivery.chunk().route.model.0];
            front.span = spans::stage(&front.delivery, self.worker.device(), graph);
        }
        let (queued, span) = (front.queued, front.span.clone());
        // Elsewhere the stage goes on while this thread does other work.
        let entered = (!is_beside).then(|| span.enter());
        let mut steps = StepLog::default();
        let completed = match time {
            None => device.poll(&mut self.trace),
            Some(_) => device.poll(&mut steps),
        };
        drop(entered);
        let Completed { run, result, stamps } = completed?;
        let Running { run: expected, delivery, submitted, timed, span, .. } =
            self.running.pop_front()?;
        debug_assert_eq!(run, expected, "runs complete in order of submission");
        let segments = Vec::new();
        let mut ended = Ended { delivery, submitted, result, stamps, timed, segments, span };
        let Some(time) = time else { return Some(ended) };
        let graph = &self.graphs[ended.delivery.chunk().route.model.0];
        ended.segments = segments_of(&**time, &ended.delivery, queued, graph, steps.0);
        match self.throttle.end(total(&ended.segments)) {
            None => Some(ended),
            Some(end) => {
                self.held = Some((end, ended));
                None
            }
        }
    }

    fn merge(&mut self, chunk: Traced<Box<Chunk>>, parts: Vec<PartDone>) -> Vec<WorkerEffect> {
        self.trace.merge_begins(&chunk, &parts);
        let graph = &self.graphs[chunk.route.model.0];
        let merging = spans::merge(&chunk, self.worker.device());
        let merged = merge_parts(&chunk, parts, graph, &self.slots);
        drop(merging);
        if let Ok((_, bytes)) = &merged {
            self.trace.merge_ends(*bytes);
        }
        self.worker.on_merged(chunk, merged.map(|(tensors, _)| tensors))
    }
}
