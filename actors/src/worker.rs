//! A device's worker: keeps chunks in order, submits their stages to the device and forwards the
//! chunks. At the end of a route it reports the result. A pure state machine: it never computes or
//! waits.

use std::sync::Arc;

use lapwing_kernels::device::{BatchSpan, DeviceError, TensorSet};
use lapwing_kernels::graph::ValueId;
use lapwing_plan::DeviceId;

use crate::chunk::{Chunk, Delivery, Part, PartDone, PartLost, SequenceRows};
use crate::decide::{DecideError, Decision};
use crate::message::{Emission, Progress};
use crate::progress::{RowEnd, RowStart};
use crate::traced::Traced;

mod end;
mod inbox;

use inbox::Inbox;

/// An action that a worker requests of its driver.
#[derive(Debug)]
pub enum WorkerEffect {
    /// Submit the delivery to the device; call [`Worker::on_done`] when the run has completed.
    Submit(Traced<Delivery>),
    /// Merge the parts, then call [`Worker::on_merged`].
    Merge(Traced<Box<Chunk>>, Vec<PartDone>),
    /// Sample tokens ([`decide`](crate::decide::decide)), then call [`Worker::on_decided`].
    Decide(Traced<Box<Chunk>>),
    /// Send the delivery to the worker of that device.
    Send(DeviceId, Traced<Delivery>),
    /// Make that worker check its waiting chunks again ([`Worker::on_nudge`]).
    Nudge(DeviceId),
    /// Report a chunk's end to the scheduler.
    Report(Traced<Progress>),
    /// Send an event to a caller.
    Emit(Traced<Emission>),
}

/// State of a worker.
///
/// # How to drive it
/// 1. Call [`on_delivery`](Worker::on_delivery) for every delivery that arrives, and
///    [`on_nudge`](Worker::on_nudge) for every nudge.
/// 2. Carry out the effects that each call returns, in order; further calls may come in between.
/// 3. After `Submit`, call [`on_done`](Worker::on_done) once per run, in order of submission. At most
///    `depth` runs are in flight.
/// 4. After `Merge` and `Decide`, call [`on_merged`](Worker::on_merged) or
///    [`on_decided`](Worker::on_decided). At most one of them is under way.
#[derive(Debug)]
pub struct Worker {
    id: DeviceId,
    device: String,
    /// Maximum number of runs in flight.
    depth: usize,
    inbox: Inbox,
    /// Runs submitted to the device and not yet completed.
    in_flight: usize,
    /// Whether this worker's thread is merging parts or sampling tokens.
    host_busy: bool,
}

impl Worker {
    /// A worker for the device of that number and name, which accepts `depth` runs at a time.
    pub fn new(id: DeviceId, device: String, depth: usize) -> Worker {
        let depth = depth.max(1);
        Worker { id, device, depth, inbox: Inbox::new(id), in_flight: 0, host_busy: false }
    }

    /// Name of the device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Number of waiting chunks and parts.
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }

    /// Runs submitted to the device and not completed.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Receives a chunk or a part.
    pub fn on_delivery(&mut self, delivery: Traced<Delivery>) -> Vec<WorkerEffect> {
        self.inbox.push(delivery);
        self.on_nudge()
    }

    /// Checks the waiting chunks again: one of them may be ready now.
    pub fn on_nudge(&mut self) -> Vec<WorkerEffect> {
        let mut effects = Vec::new();
        self.start_next(&mut effects);
        effects
    }

    /// Handles a run that has completed or failed.
    pub fn on_done(
        &mut self,
        delivery: Traced<Delivery>,
        result: Result<TensorSet, DeviceError>,
    ) -> Vec<WorkerEffect> {
        self.in_flight -= 1;
        self.inbox.on_done(delivery.chunk());
        let mut effects = Vec::new();
        let Traced { message: delivery, context } = delivery;
        match (delivery, result) {
            (Delivery::Chunk(chunk), Ok(outputs)) => {
                self.computed(Traced::new(chunk, context), outputs, &mut effects);
            }
            (Delivery::Chunk(chunk), Err(error)) => {
                self.lose(Traced::new(chunk, context), &self.device, &error, &mut effects);
            }
            (Delivery::Part(part), result) => {
                let device = self.device.clone();
                let result = result.map_err(|error| PartLost::Failed { device, error });
                self.part_done(*part, Traced::new(result, context), &mut effects);
            }
        }
        self.start_next(&mut effects);
        effects
    }

    /// Handles the end of a merge; `merged` holds the value whose parts do not fit, if one does not.
    pub fn on_merged(
        &mut self,
        chunk: Traced<Box<Chunk>>,
        merged: Result<TensorSet, ValueId>,
    ) -> Vec<WorkerEffect> {
        self.host_busy = false;
        let mut effects = Vec::new();
        match merged {
            Ok(outputs) => self.computed(chunk, outputs, &mut effects),
            Err(value) => {
                let reason = format!("the parts of value {} do not fit together", value.0);
                let error = DeviceError::Failed { device: self.device.clone(), reason };
                self.lose(chunk, &self.device, &error, &mut effects);
            }
        }
        self.start_next(&mut effects);
        effects
    }

    /// Handles the end of sampling.
    pub fn on_decided(
        &mut self,
        chunk: Traced<Box<Chunk>>,
        decided: Result<Vec<Decision>, DecideError>,
    ) -> Vec<WorkerEffect> {
        self.host_busy = false;
        let mut effects = Vec::new();
        match decided {
            Ok(decisions) => self.finish(chunk, decisions, &mut effects),
            Err(DecideError::NoLogits) => {
                let reason = "the stages before sampling produced no logits".to_owned();
                let error = DeviceError::Failed { device: self.device.clone(), reason };
                self.lose(chunk, &self.device, &error, &mut effects);
            }
            Err(DecideError::Device(error)) => {
                self.lose(chunk, &self.device, &error, &mut effects);
            }
        }
        self.start_next(&mut effects);
        effects
    }

    /// Starts ready deliveries in their turn while the device and the thread are free. Drops
    /// deliveries whose result is no longer needed.
    fn start_next(&mut self, effects: &mut Vec<WorkerEffect>) {
        while !self.host_busy {
            let can_submit = self.in_flight < self.depth;
            let starts = |chunk: &Chunk| {
                (can_submit || chunk.stage().decides() || chunk.is_void()) && self.is_ready(chunk)
            };
            let Some(next) = self.inbox.next(starts) else { return };
            let Some(Traced { message, context }) = self.inbox.take(next) else { return };
            let is_void = message.chunk().is_void();
            match message {
                Delivery::Part(part) if is_void => {
                    let lost = Traced::new(Err(PartLost::Abandoned), context);
                    self.part_done(*part, lost, effects);
                }
                Delivery::Chunk(chunk) if is_void => {
                    self.abandon(Traced::new(chunk, context), effects);
                }
                Delivery::Chunk(chunk) if chunk.stage().decides() => {
                    self.host_busy = true;
                    effects.push(WorkerEffect::Decide(Traced::new(chunk, context)));
                }
                delivery => {
                    self.in_flight += 1;
                    if let (Delivery::Chunk(chunk), true) = (&delivery, self.depth > 1) {
                        self.mark_submitted(chunk);
                    }
                    effects.push(WorkerEffect::Submit(Traced::new(delivery, context)));
                }
            }
        }
    }

    /// Allows later rows to be submitted to this device before the chunk's own rows are computed.
    fn mark_submitted(&self, chunk: &Chunk) {
        let nodes = chunk.ordered_nodes();
        for (rows, span) in with_spans(chunk) {
            let end = span.start + span.rows.len();
            rows.progress.submit(&nodes, RowEnd { end, epoch: rows.epoch }, self.id);
        }
    }

    /// Handles the end of a part. The last part of a stage ends the stage.
    fn part_done(&mut self, part: Part, done: PartDone, effects: &mut Vec<WorkerEffect>) {
        // From here on the chunk has the trace context of its last part.
        let context = done.context;
        let Some((chunk, parts)) = part.finish(done) else { return };
        let chunk = Traced::new(chunk, context);
        let lost = || parts.iter().filter_map(|part| part.as_ref().err());
        let failed = lost().find_map(|lost| match lost {
            PartLost::Failed { device, error } => Some((device.clone(), error.clone())),
            PartLost::Abandoned => None,
        });
        if let Some((device, error)) = failed {
            self.lose(chunk, &device, &error, effects);
        } else if lost().next().is_some() {
            self.abandon(chunk, effects);
        } else {
            self.host_busy = true;
            effects.push(WorkerEffect::Merge(chunk, parts));
        }
    }

    /// Handles a computed stage: forwards the chunk to its next stage.
    fn computed(
        &mut self,
        chunk: Traced<Box<Chunk>>,
        outputs: TensorSet,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let Traced { message: mut chunk, context } = chunk;
        if chunk.is_void() {
            drop(outputs);
            self.abandon(Traced::new(chunk, context), effects);
            return;
        }
        self.advance(&chunk, effects);
        let live_out = Arc::clone(&chunk.flow().live_out);
        match chunk.values_mut(&self.device) {
            Ok(values) => {
                values.keep(&live_out);
                values.append(outputs);
            }
            Err(error) => {
                self.lose(Traced::new(chunk, context), &self.device, &error, effects);
                return;
            }
        }
        chunk.cursor += 1;
        if chunk.stage().decides() && chunk.stage().only_device() == Some(self.id) {
            // This worker samples next, without a message to itself.
            self.inbox.push_first(Traced::new(Delivery::Chunk(chunk), context));
            return;
        }
        let deliveries = chunk.deliver(context).into_iter();
        effects.extend(deliveries.map(|d| WorkerEffect::Send(d.device(), d)));
    }

    /// Records that a chunk's rows have passed its stage.
    fn advance(&self, chunk: &Chunk, effects: &mut Vec<WorkerEffect>) {
        let nodes = chunk.ordered_nodes();
        for (rows, span) in with_spans(chunk) {
            let end = RowEnd { end: span.start + span.rows.len(), epoch: rows.epoch };
            self.nudge(rows.progress.advance(&nodes, end), effects);
        }
    }

    /// Nudges the waiting workers except this one, which checks its inbox anyway.
    fn nudge(&self, waiters: Vec<DeviceId>, effects: &mut Vec<WorkerEffect>) {
        let others = waiters.into_iter().filter(|worker| *worker != self.id);
        effects.extend(others.map(WorkerEffect::Nudge));
    }

    /// Whether the rows before the chunk's have passed the stage's nodes, for every sequence.
    fn is_ready(&self, chunk: &Chunk) -> bool {
        let nodes = chunk.ordered_nodes();
        with_spans(chunk).all(|(rows, span)| {
            let start = RowStart { start: span.start, epoch: rows.epoch };
            rows.progress.is_ready(&nodes, start, self.id)
        })
    }
}

/// The sequences of a chunk, each with its span of the batch. Branches of drafts have no progress of their own: they run
/// with their sequence, and what they add is known only when its tokens are chosen.
fn with_spans(chunk: &Chunk) -> impl Iterator<Item = (&SequenceRows, &BatchSpan)> {
    chunk.sequences.iter().zip(chunk.batch().sequences())
}
