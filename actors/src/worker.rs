//! A device's worker: keeps chunks in order, runs their stages, sends them on, and at the end
//! of the route turns logits into tokens. A pure state machine: it never computes or waits.

use std::collections::VecDeque;

use lapwing_kernels::device::{DeviceError, Tensor};
use lapwing_kernels::graph::ValueId;

use crate::error::RunError;
use crate::message::{
    Chunk, Emission, FinishReason, Generate, Progress, Span, SpanFinish, SpanOutcome, SpanProgress,
    StreamEvent,
};
use crate::plan::DeviceId;
use crate::sample::logprob;

/// What a worker wants done.
#[derive(Debug)]
pub enum WorkerEffect {
    /// Run the chunk's stage on the device, then call [`Worker::on_done`].
    Run(Box<Chunk>),
    /// Send the chunk to the next stage's device.
    Forward(DeviceId, Box<Chunk>),
    /// Report to the scheduler.
    Report(Progress),
    /// Hand an event to a caller.
    Emit(Emission),
    /// Give the tensor's memory back to the device.
    Recycle(Tensor),
}

/// State of a worker.
#[derive(Debug)]
pub struct Worker {
    device: String,
    logits: ValueId,
    /// Chunks that arrived, in order of arrival. One whose rows are not due yet is skipped.
    inbox: VecDeque<Box<Chunk>>,
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

    /// Chunks that wait.
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }

    /// A chunk arrives.
    pub fn on_chunk(&mut self, chunk: Box<Chunk>) -> Vec<WorkerEffect> {
        self.inbox.push_back(chunk);
        let mut effects = Vec::new();
        self.start_next(&mut effects);
        effects
    }

    /// The device has run the chunk's stage, or failed.
    pub fn on_done(
        &mut self,
        mut chunk: Box<Chunk>,
        result: Result<(), DeviceError>,
    ) -> Vec<WorkerEffect> {
        self.busy = false;
        let mut effects = Vec::new();
        match result {
            Err(error) => effects.push(self.lose(chunk, &error)),
            Ok(()) => {
                for (span, batch) in chunk.spans.iter().zip(&chunk.batch.spans) {
                    span.ledger.advance(chunk.cursor, batch.start + batch.rows.len());
                }
                if chunk.is_last_stage() {
                    self.finish(chunk, &mut effects);
                } else {
                    chunk.cursor += 1;
                    effects.push(WorkerEffect::Forward(chunk.stage().device, chunk));
                }
            }
        }
        self.start_next(&mut effects);
        effects
    }

    /// Starts the first chunk whose rows are due; drops those that nobody waits for.
    fn start_next(&mut self, effects: &mut Vec<WorkerEffect>) {
        while !self.busy {
            let Some(at) = self.inbox.iter().position(|chunk| is_due(chunk)) else { return };
            let Some(chunk) = self.inbox.remove(at) else { return };
            if chunk.spans.iter().all(|s| s.ledger.is_lost() || s.sink.is_closed()) {
                let progress = end_without_results(*chunk, || SpanOutcome::Abandoned);
                effects.push(WorkerEffect::Report(progress));
            } else {
                self.busy = true;
                effects.push(WorkerEffect::Run(chunk));
            }
        }
    }

    fn finish(&self, mut chunk: Box<Chunk>, effects: &mut Vec<WorkerEffect>) {
        let Some(logits) = chunk.tensors.take(self.logits) else {
            let reason = "the last stage left no logits".to_owned();
            let error = DeviceError::Failed { device: self.device.clone(), reason };
            effects.push(self.lose(chunk, &error));
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
        effects.push(WorkerEffect::Recycle(logits));
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

    fn lose(&self, chunk: Box<Chunk>, error: &DeviceError) -> WorkerEffect {
        let error = RunError::Device { device: self.device.clone(), reason: error.to_string() };
        WorkerEffect::Report(end_without_results(*chunk, || SpanOutcome::Lost(error.clone())))
    }
}

/// Whether every span's earlier rows are in this stage's cache (S0-30, S0-31).
fn is_due(chunk: &Chunk) -> bool {
    chunk
        .spans
        .iter()
        .zip(&chunk.batch.spans)
        .all(|(span, batch)| span.ledger.is_lost() || span.ledger.rows(chunk.cursor) == batch.start)
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
