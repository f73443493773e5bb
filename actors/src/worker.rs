//! A device's worker: keeps chunks in order, runs their stages, sends them on, and at the end
//! of the route turns logits into tokens. A pure state machine: it never computes or waits.

use std::collections::VecDeque;
use std::sync::Arc;

use lapwing_kernels::device::{DeviceError, Tensor, TensorSet};
use lapwing_kernels::graph::ValueId;

use crate::error::RunError;
use crate::message::{
    Chunk, Delivery, Emission, FinishReason, Generate, PartDone, PartLost, Progress, Sent, Span,
    SpanFinish, SpanOutcome, SpanProgress, StreamEvent,
};
use crate::plan::DeviceId;
use crate::sample::logprob;

/// What a worker wants done.
#[derive(Debug)]
pub enum WorkerEffect {
    /// Run it on the device, then call [`Worker::on_done`].
    Run(Delivery),
    /// Put the parts together, then call [`Worker::on_merged`].
    Merge(Box<Chunk>, Vec<PartDone>),
    /// Send it to that device.
    Send(DeviceId, Delivery),
    /// Have that device's worker look again, with [`Worker::on_wake`]: a chunk waits there for
    /// rows that this one has computed.
    Wake(DeviceId),
    /// Report to the scheduler.
    Report(Progress),
    /// Hand an event to a caller.
    Emit(Emission),
}

/// State of a worker.
#[derive(Debug)]
pub struct Worker {
    device: String,
    logits: ValueId,
    /// What arrived, in order of arrival. A chunk whose rows are not due yet is skipped.
    inbox: VecDeque<Delivery>,
    busy: bool,
}

impl Worker {
    /// A worker for the device of that name, in a model whose logits are `logits`.
    pub fn new(device: String, logits: ValueId) -> Worker {
        Worker { device, logits, inbox: VecDeque::new(), busy: false }
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

    /// Another device has computed rows that something here waits for.
    pub fn on_wake(&mut self) -> Vec<WorkerEffect> {
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
                lose(chunk, &self.device, &error, &mut effects);
            }
            (Delivery::Part(part), result) => {
                let device = self.device.clone();
                let outcome = result.map_err(|error| PartLost::Failed { device, error });
                let joined = part.hold.finish(PartDone { outcome, sent });
                self.joined(joined, &mut effects);
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
                lose(chunk, &self.device, &error, &mut effects);
            }
        }
        self.start_next(&mut effects);
        effects
    }

    /// Starts what is due first; drops what nobody waits for.
    fn start_next(&mut self, effects: &mut Vec<WorkerEffect>) {
        while !self.busy {
            let Some(at) = self.next_due() else { return };
            let Some(delivery) = self.inbox.remove(at) else { return };
            if !delivery.chunk().is_abandoned() {
                self.busy = true;
                effects.push(WorkerEffect::Run(delivery));
                return;
            }
            match delivery {
                Delivery::Chunk(chunk) => abandon(chunk, effects),
                Delivery::Part(part) => {
                    let sent = None;
                    let done = PartDone { outcome: Err(PartLost::Abandoned), sent };
                    let joined = part.hold.finish(done);
                    self.joined(joined, effects);
                }
            }
        }
    }

    /// Place of the first that is due. Where none is, whoever computes the rows before them wakes
    /// this worker: chunks of one sequence may take different routes.
    fn next_due(&self) -> Option<usize> {
        let due = || self.inbox.iter().position(|delivery| is_due(delivery.chunk()));
        due().or_else(|| {
            for delivery in &self.inbox {
                let device = delivery.device();
                delivery.chunk().spans.iter().for_each(|span| span.ledger.wait(device));
            }
            due()
        })
    }

    /// Every part of a stage is through, if this was the last.
    fn joined(
        &mut self,
        joined: Option<(Box<Chunk>, Vec<PartDone>)>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let Some((chunk, parts)) = joined else { return };
        let lost = || parts.iter().filter_map(|part| part.outcome.as_ref().err());
        let failed = lost().find_map(|lost| match lost {
            PartLost::Failed { device, error } => Some((device.clone(), error.clone())),
            PartLost::Abandoned => None,
        });
        if let Some((device, error)) = failed {
            lose(chunk, &device, &error, effects);
        } else if lost().next().is_some() {
            abandon(chunk, effects);
        } else {
            self.busy = true;
            effects.push(WorkerEffect::Merge(chunk, parts));
        }
    }

    /// The chunk's stage is computed: on to the next one, or to its end.
    fn computed(&self, mut chunk: Box<Chunk>, outputs: TensorSet, effects: &mut Vec<WorkerEffect>) {
        let nodes = chunk.stage().nodes.clone();
        for (span, batch) in chunk.spans.iter().zip(&chunk.batch.spans) {
            span.ledger.advance(&nodes, batch.start + batch.rows.len());
            effects.extend(span.ledger.take_waiting().map(WorkerEffect::Wake));
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
            lose(chunk, &self.device, &error, effects);
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
            span.ledger.lose();
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
                    ledger.lose();
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
}

fn lose(chunk: Box<Chunk>, device: &str, error: &DeviceError, effects: &mut Vec<WorkerEffect>) {
    let error = RunError::Device { device: device.to_owned(), reason: error.to_string() };
    end_early(chunk, || SpanOutcome::Lost(error.clone()), effects);
}

fn abandon(chunk: Box<Chunk>, effects: &mut Vec<WorkerEffect>) {
    end_early(chunk, || SpanOutcome::Abandoned, effects);
}

/// Ends a chunk without results, and has those look again that wait for its rows.
fn end_early(
    chunk: Box<Chunk>,
    outcome: impl Fn() -> SpanOutcome,
    effects: &mut Vec<WorkerEffect>,
) {
    let ledgers: Vec<_> = chunk.spans.iter().map(|span| Arc::clone(&span.ledger)).collect();
    effects.push(WorkerEffect::Report(end_without_results(*chunk, outcome)));
    effects.extend(ledgers.iter().flat_map(|l| l.take_waiting()).map(WorkerEffect::Wake));
}

/// Whether every span's earlier rows have been computed by the stage's nodes (S0-30, S0-31).
fn is_due(chunk: &Chunk) -> bool {
    let nodes = &chunk.stage().nodes;
    let mut spans = chunk.spans.iter().zip(&chunk.batch.spans);
    spans.all(|(span, batch)| span.ledger.is_lost() || span.ledger.rows(nodes) == batch.start)
}

/// Ends a chunk without results; its leases and its permit are free afterwards.
fn end_without_results(chunk: Chunk, outcome: impl Fn() -> SpanOutcome) -> Progress {
    let spans = chunk.spans.iter().zip(&chunk.batch.spans);
    let spans = spans
        .map(|(span, batch)| {
            span.ledger.lose();
            SpanProgress { sequence: span.sequence, rows: batch.rows.len(), outcome: outcome() }
        })
        .collect();
    Progress { chunk: chunk.id, spans, record: chunk.record }
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
