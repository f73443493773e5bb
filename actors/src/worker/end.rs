//! Ends of chunks: decisions are emitted, and the chunk's end is reported to the scheduler.

use std::collections::BTreeSet;
use std::sync::Arc;

use lapwing_kernels::device::DeviceError;
use lapwing_plan::DeviceId;

use super::{Worker, WorkerEffect};
use crate::chunk::{Chunk, SequenceRows, Turn};
use crate::decide::Decision;
use crate::error::RunError;
use crate::message::{Emission, Outcome, Progress, SequenceProgress, StreamEvent};
use crate::sample::SampleError;
use crate::traced::Traced;

impl Worker {
    /// Emits the decisions and ends the chunk.
    pub(super) fn finish(
        &self,
        chunk: Traced<Box<Chunk>>,
        decisions: Vec<Decision>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let Traced { message: chunk, context } = chunk;
        self.advance(&chunk, effects);
        let Chunk { id, payload, sequences, permit, .. } = *chunk;
        let mut done = Vec::with_capacity(sequences.len());
        for ((rows, of_batch), decision) in
            sequences.into_iter().zip(payload.batch.sequence_rows()).zip(decisions)
        {
            let (sequence, epoch, count) = (rows.sequence, rows.epoch, of_batch.len());
            let mut rows = rows;
            let hidden = rows.hidden.take();
            let outcome = self.outcome(rows, decision, effects);
            done.push(SequenceProgress { sequence, epoch, rows: count, outcome, hidden });
        }
        drop(payload);
        // The permit must be free before the scheduler receives the report.
        drop(permit);
        let progress = Progress { chunk: id, sequences: done };
        effects.push(WorkerEffect::Report(Traced::new(progress, context)));
    }

    /// Emits the decision for one sequence and returns its outcome.
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
            Decision::Hidden(values, count) => {
                emit(&rows, StreamEvent::Hidden(values), effects);
                Outcome::Embedded(count)
            }
            // The tokens of a draft model are for the scheduler only.
            Decision::Tokens(tokens, generate) if rows.sequence.is_draft() => {
                Outcome::Sampled(tokens, generate)
            }
            Decision::Tokens(tokens, generate) => {
                for sampled in tokens.iter() {
                    emit(&rows, StreamEvent::Token(sampled.clone()), effects);
                }
                Outcome::Sampled(tokens, generate)
            }
            Decision::Void => self.outcome_of_void(rows, effects),
            Decision::NoToken(error) => {
                self.nudge(rows.progress.lose(), effects);
                let (device, reason) = (self.device.clone(), error.to_string());
                Outcome::Lost(match error {
                    SampleError::NoToken => RunError::Device { device, reason },
                    _ => RunError::Constraint { reason },
                })
            }
        }
    }

    /// The outcome of rows whose result is no longer needed. Stale rows leave their sequence unchanged.
    fn outcome_of_void(&self, rows: SequenceRows, effects: &mut Vec<WorkerEffect>) -> Outcome {
        let mut rows = rows;
        if rows.is_stale() {
            return Outcome::Stale(rows.action.drop_pass());
        }
        self.nudge(rows.progress.lose(), effects);
        Outcome::Abandoned
    }

    /// Ends a chunk that could not be computed.
    pub(super) fn lose(
        &self,
        chunk: Traced<Box<Chunk>>,
        device: &str,
        error: &DeviceError,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let error = RunError::Device { device: device.to_owned(), reason: error.to_string() };
        self.end_without_results(chunk, Some(&error), effects);
    }

    /// Ends a chunk whose results are not needed.
    pub(super) fn abandon(&self, chunk: Traced<Box<Chunk>>, effects: &mut Vec<WorkerEffect>) {
        self.end_without_results(chunk, None, effects);
    }

    /// Ends a chunk without results and releases its leases and its permit.
    fn end_without_results(
        &self,
        chunk: Traced<Box<Chunk>>,
        error: Option<&RunError>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let Traced { message: chunk, context } = chunk;
        // Devices may be kept for it.
        let kept = chunk.route.stages.iter().flat_map(|stage| &stage.parts).map(|part| part.device);
        let kept: BTreeSet<DeviceId> = kept.filter(|_| chunk.turn() == Turn::Due).collect();
        let Chunk { id, payload, sequences, permit, life, .. } = *chunk;
        drop(life);
        self.nudge(kept.into_iter().collect(), effects);
        let mut done = Vec::with_capacity(sequences.len());
        for (rows, of_batch) in sequences.into_iter().zip(payload.batch.sequence_rows()) {
            let (sequence, epoch, count) = (rows.sequence, rows.epoch, of_batch.len());
            let outcome = match error {
                Some(error) if !rows.is_stale() => {
                    self.nudge(rows.progress.lose(), effects);
                    Outcome::Lost(error.clone())
                }
                _ => self.outcome_of_void(rows, effects),
            };
            done.push(SequenceProgress { sequence, epoch, rows: count, outcome, hidden: None });
        }
        drop(payload);
        drop(permit);
        let progress = Progress { chunk: id, sequences: done };
        effects.push(WorkerEffect::Report(Traced::new(progress, context)));
    }
}
