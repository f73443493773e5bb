//! A device's worker: keeps chunks in order, submits their stages, sends them on, and at the end of
//! the route reports what was decided. A pure state machine: it never computes or waits.

use std::collections::VecDeque;
use std::sync::Arc;

use lapwing_kernels::device::{BatchSpan, DeviceError, TensorSet};
use lapwing_kernels::graph::ValueId;
use lapwing_plan::DeviceId;

use crate::chunk::{Chunk, Delivery, Part, PartDone, PartLost, SequenceRows};
use crate::decide::{Decision, NoLogits};
use crate::error::RunError;
use crate::message::{Emission, Outcome, Progress, SequenceProgress, StreamEvent};
use crate::progress::{RowEnd, RowStart};
use crate::traced::Traced;

/// What a worker wants done.
#[derive(Debug)]
pub enum WorkerEffect {
    /// Submit it to the device; call [`Worker::on_done`] when the run has completed.
    Submit(Traced<Delivery>),
    /// Put the parts together, then call [`Worker::on_merged`].
    Merge(Traced<Box<Chunk>>, Vec<PartDone>),
    /// Choose tokens ([`decide`](crate::decide::decide)), then call [`Worker::on_decided`].
    Decide(Traced<Box<Chunk>>),
    /// Send it to that device.
    Send(DeviceId, Traced<Delivery>),
    /// Let that worker look again at what waits there ([`Worker::on_nudge`]).
    Nudge(DeviceId),
    /// Report to the scheduler.
    Report(Traced<Progress>),
    /// Hand an event to a caller.
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
    /// Most runs in flight.
    depth: usize,
    /// What arrived, in order of arrival. A chunk whose rows are not ready is skipped.
    inbox: VecDeque<Traced<Delivery>>,
    /// Runs submitted and not completed.
    in_flight: usize,
    /// Parts are being put together, or tokens chosen, on this worker's thread.
    host_busy: bool,
}

impl Worker {
    /// A worker for the device of that number and name, which takes `depth` runs at a time.
    pub fn new(id: DeviceId, device: String, depth: usize) -> Worker {
        let depth = depth.max(1);
        Worker { id, device, depth, inbox: VecDeque::new(), in_flight: 0, host_busy: false }
    }

    /// Name of the device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Chunks and parts that wait.
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }

    /// Runs submitted to the device and not completed.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// A chunk or a part arrives.
    pub fn on_delivery(&mut self, delivery: Traced<Delivery>) -> Vec<WorkerEffect> {
        self.inbox.push_back(delivery);
        self.on_nudge()
    }

    /// What waits here may be ready now.
    pub fn on_nudge(&mut self) -> Vec<WorkerEffect> {
        let mut effects = Vec::new();
        self.start_next(&mut effects);
        effects
    }

    /// A run has completed, or failed.
    pub fn on_done(
        &mut self,
        delivery: Traced<Delivery>,
        result: Result<TensorSet, DeviceError>,
    ) -> Vec<WorkerEffect> {
        self.in_flight -= 1;
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

    /// The parts have been put together, or do not fit.
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

    /// Tokens have been chosen.
    pub fn on_decided(
        &mut self,
        chunk: Traced<Box<Chunk>>,
        decided: Result<Vec<Decision>, NoLogits>,
    ) -> Vec<WorkerEffect> {
        self.host_busy = false;
        let mut effects = Vec::new();
        match decided {
            Ok(decisions) => self.finish(chunk, decisions, &mut effects),
            Err(NoLogits) => {
                let reason = "the stages before the choice of tokens left no logits".to_owned();
                let error = DeviceError::Failed { device: self.device.clone(), reason };
                self.lose(chunk, &self.device, &error, &mut effects);
            }
        }
        self.start_next(&mut effects);
        effects
    }

    /// Starts what is ready, in order of arrival, as far as the device and the thread are free;
    /// drops what is not needed any more.
    fn start_next(&mut self, effects: &mut Vec<WorkerEffect>) {
        while !self.host_busy {
            let can_submit = self.in_flight < self.depth;
            let starts = |delivery: &Traced<Delivery>| {
                let chunk = delivery.chunk();
                (can_submit || chunk.stage().decides() || chunk.is_void()) && self.is_ready(chunk)
            };
            let Some(at) = self.inbox.iter().position(starts) else { return };
            let Some(Traced { message, context }) = self.inbox.remove(at) else { return };
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

    /// Lets the rows behind the chunk's be submitted to this device before these are computed.
    fn mark_submitted(&self, chunk: &Chunk) {
        let nodes = chunk.ordered_nodes();
        for (rows, span) in with_spans(chunk) {
            let end = span.start + span.rows.len();
            rows.progress.submit(&nodes, RowEnd { end, epoch: rows.epoch }, self.id);
        }
    }

    /// A part is through; if it was the stage's last, so is the stage.
    fn part_done(&mut self, part: Part, done: PartDone, effects: &mut Vec<WorkerEffect>) {
        // From here on the chunk's context is that of its last part.
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

    /// The chunk's stage is computed: the chunk goes on to the next one.
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
            // No message to itself: it is the next thing that this worker does.
            self.inbox.push_front(Traced::new(Delivery::Chunk(chunk), context));
            return;
        }
        let deliveries = chunk.deliver(context).into_iter();
        effects.extend(deliveries.map(|d| WorkerEffect::Send(d.device(), d)));
    }

    /// The rows of a chunk have passed its stage.
    fn advance(&self, chunk: &Chunk, effects: &mut Vec<WorkerEffect>) {
        let nodes = chunk.ordered_nodes();
        for (rows, span) in with_spans(chunk) {
            let end = RowEnd { end: span.start + span.rows.len(), epoch: rows.epoch };
            self.nudge(rows.progress.advance(&nodes, end), effects);
        }
    }

    /// Hands out what was decided, and ends the chunk.
    fn finish(
        &self,
        chunk: Traced<Box<Chunk>>,
        decisions: Vec<Decision>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let Traced { message: chunk, context } = chunk;
        self.advance(&chunk, effects);
        let Chunk { id, payload, sequences, permit, trace, .. } = *chunk;
        let _entered = trace.enter();
        let mut done = Vec::with_capacity(sequences.len());
        for ((rows, span), decision) in
            sequences.into_iter().zip(&payload.batch.spans).zip(decisions)
        {
            let (sequence, epoch, count) = (rows.sequence, rows.epoch, span.rows.len());
            let outcome = self.outcome(rows, decision, effects);
            done.push(SequenceProgress { sequence, epoch, rows: count, outcome });
        }
        drop(payload);
        // The permit must be free before the scheduler hears of it.
        drop(permit);
        let progress = Progress { chunk: id, sequences: done };
        effects.push(WorkerEffect::Report(Traced::new(progress, context)));
    }

    /// Emits what was decided for a sequence.
    fn outcome(
        &self,
        rows: SequenceRows,
        decision: Decision,
        effects: &mut Vec<WorkerEffect>,
    ) -> Outcome {
        let emit = |rows: &SequenceRows, event, effects: &mut Vec<WorkerEffect>| {
            let emission =
                Emission { sequence: rows.sequence, sink: Arc::clone(&rows.sink), event };
            effects.push(WorkerEffect::Emit(Traced::new(emission, rows.context)));
        };
        match decision {
            Decision::Nothing => Outcome::Computed,
            Decision::Scores(scores) => {
                let count = scores.len();
                emit(&rows, StreamEvent::Scores(scores), effects);
                Outcome::Scored(count)
            }
            Decision::Tokens(tokens, generate) => {
                for sampled in tokens.iter() {
                    emit(&rows, StreamEvent::Token(*sampled), effects);
                }
                Outcome::Sampled(tokens, generate)
            }
            Decision::Void => self.outcome_of_void(rows, effects),
            Decision::NoToken => {
                self.nudge(rows.progress.lose(), effects);
                Outcome::Lost(RunError::Device {
                    device: self.device.clone(),
                    reason: "no logit is a number, or every token is forbidden".to_owned(),
                })
            }
        }
    }

    /// The outcome of rows that are not needed any more. Stale rows leave their sequence as it is.
    fn outcome_of_void(&self, rows: SequenceRows, effects: &mut Vec<WorkerEffect>) -> Outcome {
        let mut rows = rows;
        if rows.is_stale() {
            return Outcome::Stale(rows.action.take_generate());
        }
        self.nudge(rows.progress.lose(), effects);
        Outcome::Abandoned
    }

    /// Ends a chunk that could not be computed.
    fn lose(
        &self,
        chunk: Traced<Box<Chunk>>,
        device: &str,
        error: &DeviceError,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let error = RunError::Device { device: device.to_owned(), reason: error.to_string() };
        self.end_without_results(chunk, Some(&error), effects);
    }

    /// Ends a chunk of which no result is needed.
    fn abandon(&self, chunk: Traced<Box<Chunk>>, effects: &mut Vec<WorkerEffect>) {
        self.end_without_results(chunk, None, effects);
    }

    /// Ends a chunk without results; its leases and its permit are free afterwards.
    fn end_without_results(
        &self,
        chunk: Traced<Box<Chunk>>,
        error: Option<&RunError>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let Traced { message: chunk, context } = chunk;
        let Chunk { id, payload, sequences, permit, .. } = *chunk;
        let mut done = Vec::with_capacity(sequences.len());
        for (rows, span) in sequences.into_iter().zip(&payload.batch.spans) {
            let (sequence, epoch, count) = (rows.sequence, rows.epoch, span.rows.len());
            let outcome = match error {
                Some(error) if !rows.is_stale() => {
                    self.nudge(rows.progress.lose(), effects);
                    Outcome::Lost(error.clone())
                }
                _ => self.outcome_of_void(rows, effects),
            };
            done.push(SequenceProgress { sequence, epoch, rows: count, outcome });
        }
        drop(payload);
        drop(permit);
        let progress = Progress { chunk: id, sequences: done };
        effects.push(WorkerEffect::Report(Traced::new(progress, context)));
    }

    /// Other workers may find what waits there ready now; this one looks anyway.
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

/// The sequences of a chunk, each with its span of the batch.
fn with_spans(chunk: &Chunk) -> impl Iterator<Item = (&SequenceRows, &BatchSpan)> {
    chunk.sequences.iter().zip(&chunk.batch().spans)
}
