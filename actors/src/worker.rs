//! A device's worker: keeps chunks in order, runs their stages, sends them on, and at the end
//! of the route turns logits into tokens. A pure state machine: it never computes or waits.

use std::collections::VecDeque;

use lapwing_kernels::device::{DeviceError, Tensor, TensorSet};
use lapwing_kernels::graph::ValueId;

use crate::error::RunError;
use crate::message::{
    Chunk, Delivery, Emission, FinishReason, Generate, Part, PartDone, PartLost, Progress, Sent,
    Span, SpanFinish, SpanOutcome, SpanProgress, StreamEvent,
};
use crate::sample::logprob;
use lapwing_plan::DeviceId;

/// What a worker wants done.
#[derive(Debug)]
pub enum WorkerEffect {
    /// Run it on the device, then call [`Worker::on_done`].
    Run(Delivery),
    /// Put the parts together, then call [`Worker::on_merged`].
    Merge(Box<Chunk>, Vec<PartDone>),
    /// Send it to that device.
    Send(DeviceId, Delivery),
    /// Let that worker look again at what waits there ([`Worker::on_nudge`]).
    Nudge(DeviceId),
    /// Report to the scheduler.
    Report(Progress),
    /// Hand an event to a caller.
    Emit(Emission),
}

/// State of a worker.
#[derive(Debug)]
pub struct Worker {
    id: DeviceId,
    device: String,
    logits: ValueId,
    /// What arrived, in order of arrival. A chunk whose rows are not due yet is skipped.
    inbox: VecDeque<Delivery>,
    busy: bool,
}

impl Worker {
    /// A worker for the device of that number and name, in a model whose logits are `logits`.
    pub fn new(id: DeviceId, device: String, logits: ValueId) -> Worker {
        Worker { id, device, logits, inbox: VecDeque::new(), busy: false }
    }

    /// Name of the device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Chunks and parts that wait.
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }

    /// A chunk or a part arrives.
    pub fn on_delivery(&mut self, delivery: Delivery) -> Vec<WorkerEffect> {
        self.inbox.push_back(delivery);
        let mut effects = Vec::new();
        self.start_next(&mut effects);
        effects
    }

    /// What waits here may be due now.
    pub fn on_nudge(&mut self) -> Vec<WorkerEffect> {
        let mut effects = Vec::new();
        self.start_next(&mut effects);
        effects
    }

    /// The device has run it, or failed. `sent` is what a recording knows of a part's way to
    /// whoever finishes last.
    pub fn on_done(
        &mut self,
        delivery: Delivery,
        result: Result<TensorSet, DeviceError>,
        sent: Sent,
    ) -> Vec<WorkerEffect> {
        self.busy = false;
        let mut effects = Vec::new();
        match (delivery, result) {
            (Delivery::Chunk(chunk), Ok(outputs)) => self.computed(chunk, outputs, &mut effects),
            (Delivery::Chunk(chunk), Err(error)) => {
                self.lose(chunk, &self.device, &error, &mut effects);
            }
            (Delivery::Part(part), result) => {
                let device = self.device.clone();
                let outcome = result.map_err(|error| PartLost::Failed { device, error });
                self.part_done(*part, PartDone { outcome, sent }, &mut effects);
            }
        }
        self.start_next(&mut effects);
        effects
    }

    /// The parts have been put together, or do not fit.
    pub fn on_merged(
        &mut self,
        chunk: Box<Chunk>,
        merged: Result<TensorSet, ValueId>,
    ) -> Vec<WorkerEffect> {
        self.busy = false;
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

    /// Starts what is due first; drops what nobody waits for.
    fn start_next(&mut self, effects: &mut Vec<WorkerEffect>) {
        while !self.busy {
            let Some(at) = self.inbox.iter().position(|d| self.is_due(d.chunk())) else { return };
            let Some(delivery) = self.inbox.remove(at) else { return };
            if !delivery.chunk().is_abandoned() {
                self.busy = true;
                effects.push(WorkerEffect::Run(delivery));
                return;
            }
            match delivery {
                Delivery::Chunk(chunk) => self.abandon(chunk, effects),
                Delivery::Part(part) => {
                    let outcome = Err(PartLost::Abandoned);
                    self.part_done(*part, PartDone { outcome, sent: None }, effects);
                }
            }
        }
    }

    /// A part is through; if it was the stage's last, so is the stage.
    fn part_done(&mut self, part: Part, done: PartDone, effects: &mut Vec<WorkerEffect>) {
        let Part { hold, record } = part;
        let Some((mut chunk, parts)) = hold.finish(done) else { return };
        // From here on the chunk's way is that of its last part.
        chunk.record = record;
        let lost = || parts.iter().filter_map(|part| part.outcome.as_ref().err());
        let failed = lost().find_map(|lost| match lost {
            PartLost::Failed { device, error } => Some((device.clone(), error.clone())),
            PartLost::Abandoned => None,
        });
        if let Some((device, error)) = failed {
            self.lose(chunk, &device, &error, effects);
        } else if lost().next().is_some() {
            self.abandon(chunk, effects);
        } else {
            self.busy = true;
            effects.push(WorkerEffect::Merge(chunk, parts));
        }
    }

    /// The chunk's stage is computed: on to the next one, or to its end.
    fn computed(&self, mut chunk: Box<Chunk>, outputs: TensorSet, effects: &mut Vec<WorkerEffect>) {
        let nodes = chunk.stage().nodes.clone();
        for (span, batch) in chunk.spans.iter().zip(&chunk.batch.spans) {
            let early = span.ledger.advance(&nodes, batch.start + batch.rows.len());
            self.nudge(early, effects);
        }
        let Chunk { route, cursor, tensors, .. } = &mut *chunk;
        tensors.keep(&route.flows[*cursor].live_out);
        tensors.append(outputs);
        if chunk.is_last_stage() {
            self.finish(chunk, effects);
        } else {
            chunk.cursor += 1;
            let deliveries = chunk.deliver().into_iter();
            effects.extend(deliveries.map(|d| WorkerEffect::Send(d.device(), d)));
        }
    }

    fn finish(&self, mut chunk: Box<Chunk>, effects: &mut Vec<WorkerEffect>) {
        let Some(logits) = chunk.tensors.take(self.logits) else {
            let reason = "the last stage left no logits".to_owned();
            let error = DeviceError::Failed { device: self.device.clone(), reason };
            self.lose(chunk, &self.device, &error, effects);
            return;
        };
        let Chunk { id, batch, spans, permit, trace, record, .. } = *chunk;
        let _entered = trace.enter();
        let mut selected = 0;
        let mut done = Vec::with_capacity(spans.len());
        for (span, rows) in spans.into_iter().zip(&batch.spans) {
            let first = selected;
            selected +=
                batch.selected[first..].iter().take_while(|r| rows.rows.contains(r)).count();
            let wanted = SpanRows { logits: &logits, first, count: selected - first };
            let sequence = span.sequence;
            let outcome = self.emit(span, wanted, effects);
            done.push(SpanProgress { sequence, rows: rows.rows.len(), outcome });
        }
        drop(logits);
        // The permit must be free before the scheduler hears of it.
        drop(permit);
        effects.push(WorkerEffect::Report(Progress { chunk: id, spans: done, record }));
    }

    /// Turns a span's logits into what its caller wants.
    fn emit(
        &self,
        span: Span,
        wanted: SpanRows<'_>,
        effects: &mut Vec<WorkerEffect>,
    ) -> SpanOutcome {
        if span.sink.is_closed() || span.ledger.is_lost() {
            self.nudge(span.ledger.lose(), effects);
            return SpanOutcome::Abandoned;
        }
        let Span { sequence, sink, ledger, finish, traced, .. } = span;
        let send = |event| {
            effects.push(WorkerEffect::Emit(Emission { sequence, traced, sink, event }));
        };
        match finish {
            SpanFinish::None => SpanOutcome::Computed,
            SpanFinish::Score(targets) => {
                let rows = wanted.first..wanted.first + wanted.count;
                let scores: Vec<f32> = targets
                    .iter()
                    .zip(rows)
                    .map(|(target, row)| logprob(wanted.logits.row(row), *target))
                    .collect();
                let count = scores.len();
                send(StreamEvent::Scores(scores));
                SpanOutcome::Scored(count)
            }
            SpanFinish::Sample(mut generate) => {
                let Some(mut sampled) = generate.sampler.sample(wanted.logits.row(wanted.first))
                else {
                    self.nudge(ledger.lose(), effects);
                    return SpanOutcome::Lost(RunError::Device {
                        device: self.device.clone(),
                        reason: "no logit is a number, or every token is forbidden".to_owned(),
                    });
                };
                sampled.finish = finish_reason(&mut generate, sampled.id);
                send(StreamEvent::Token(sampled));
                SpanOutcome::Sampled(sampled, generate)
            }
        }
    }

    /// Ends a chunk that could not be computed.
    fn lose(
        &self,
        chunk: Box<Chunk>,
        device: &str,
        error: &DeviceError,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let error = RunError::Device { device: device.to_owned(), reason: error.to_string() };
        self.end_without_results(*chunk, || SpanOutcome::Lost(error.clone()), effects);
    }

    /// Ends a chunk that nobody waits for.
    fn abandon(&self, chunk: Box<Chunk>, effects: &mut Vec<WorkerEffect>) {
        self.end_without_results(*chunk, || SpanOutcome::Abandoned, effects);
    }

    /// Ends a chunk without results; its leases and its permit are free afterwards.
    fn end_without_results(
        &self,
        chunk: Chunk,
        outcome: impl Fn() -> SpanOutcome,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let mut spans = Vec::with_capacity(chunk.spans.len());
        for (span, batch) in chunk.spans.iter().zip(&chunk.batch.spans) {
            self.nudge(span.ledger.lose(), effects);
            let (sequence, rows) = (span.sequence, batch.rows.len());
            spans.push(SpanProgress { sequence, rows, outcome: outcome() });
        }
        let progress = Progress { chunk: chunk.id, spans, record: chunk.record };
        drop(chunk);
        effects.push(WorkerEffect::Report(progress));
    }

    /// Workers that came too early may be due now; this one looks anyway.
    fn nudge(&self, early: Vec<DeviceId>, effects: &mut Vec<WorkerEffect>) {
        let others = early.into_iter().filter(|worker| *worker != self.id);
        effects.extend(others.map(WorkerEffect::Nudge));
    }

    /// Whether every span's earlier rows have been computed by the stage's nodes (S0-30, S0-31).
    fn is_due(&self, chunk: &Chunk) -> bool {
        let nodes = &chunk.stage().nodes;
        let mut spans = chunk.spans.iter().zip(&chunk.batch.spans);
        spans.all(|(span, batch)| span.ledger.is_due(nodes, batch.start, self.id))
    }
}

/// The rows of the logits that belong to one span.
struct SpanRows<'a> {
    logits: &'a Tensor,
    first: usize,
    count: usize,
}

fn finish_reason(generate: &mut Generate, id: u32) -> Option<FinishReason> {
    generate.tokens_max = generate.tokens_max.saturating_sub(1);
    if generate.stop_ids.contains(&id) {
        Some(FinishReason::Stop)
    } else if generate.tokens_max == 0 {
        Some(FinishReason::Length)
    } else {
        None
    }
}
