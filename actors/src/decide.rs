//! Sampling and scoring: the last stage of a route turns logits into tokens or scores, on the host.
//! Hidden states are copied out: those of embeddings, and those that another model is given.

mod passed_on;

use std::cell::OnceCell;
use std::ops::Range;

use lapwing_kernels::device::{Batch, DeviceError, SlotPool, Tensor, TopLogit};
use lapwing_plan::StageWork;

use crate::chunk::{Chunk, OutputAction};
use crate::draft::StepTokens;
use crate::message::{FinishReason, Generate};
use crate::sample::{SampleError, Sampled, Scored, logprob};
use passed_on::PassedOn;

/// The result of the last stage for the rows of one sequence.
#[derive(Debug)]
pub enum Decision {
    /// The rows need no output.
    Nothing,
    /// The sampled tokens, with the sampling state unless the next pass has got it.
    Tokens(StepTokens, Option<Box<Generate>>),
    /// The scored tokens.
    Scores(Vec<Scored>),
    /// Hidden states, `[rows, width]`, and the number of rows.
    Hidden(Vec<f32>, usize),
    /// The result is no longer needed.
    Void,
    /// No token can be sampled.
    NoToken(SampleError),
}

/// Why nothing can be sampled or scored.
#[derive(Clone, Debug, PartialEq)]
pub enum DecideError {
    /// The earlier stages produced no logits.
    NoLogits,
    /// The logits are in the memory of a device that has failed.
    Device(DeviceError),
}

impl From<DeviceError> for DecideError {
    fn from(error: DeviceError) -> DecideError {
        DecideError::Device(error)
    }
}

/// Logits or hidden states, in host memory or in a device's. They are copied when a row of them is first read.
struct Logits<'a> {
    tensor: &'a Tensor,
    slots: &'a SlotPool,
    copied: OnceCell<Tensor>,
}

impl Logits<'_> {
    fn row(&self, row: usize) -> Result<&[f32], DeviceError> {
        if self.tensor.host().is_some() {
            return Ok(self.tensor.row(row));
        }
        if self.copied.get().is_none() {
            let copy = self.tensor.copied(self.slots)?;
            _ = self.copied.set(copy);
        }
        Ok(self.copied.get().map_or(&[], |tensor| tensor.row(row)))
    }

    /// The most likely token of a row, if the device found it.
    fn top(&self, row: usize) -> Option<TopLogit> {
        self.tensor.top()?.get(row).copied().flatten()
    }
}

/// Samples or scores every sequence of a chunk, in the order of the batch. Logits in a device's
/// memory are copied into a slot of `slots`, unless every sequence takes its most likely token.
///
/// # Errors
/// [`DecideError`] when there are no logits.
pub fn decide(chunk: &mut Chunk, slots: &SlotPool) -> Result<Vec<Decision>, DecideError> {
    let StageWork::Decide { logits, passed_on } = chunk.stage().work else {
        return Err(DecideError::NoLogits);
    };
    let Chunk { payload, sequences, .. } = chunk;
    let tensor = payload.values.get(logits).ok_or(DecideError::NoLogits)?;
    let rows_of = |tensor| Logits { tensor, slots, copied: OnceCell::new() };
    let logits = rows_of(tensor);
    let batch = &payload.batch;
    let hidden = passed_on.and_then(|value| payload.values.get(value)).map(rows_of);
    let mut selected = 0;
    let mut decisions = Vec::with_capacity(sequences.len());
    for (rows, of_batch) in sequences.iter_mut().zip(batch.sequence_rows()) {
        let first = selected;
        selected += batch.selected[first..].iter().take_while(|r| of_batch.contains(r)).count();
        let decision = match rows.is_void() {
            true => Decision::Void,
            false => one(&mut rows.action, batch, &logits, first..selected)?,
        };
        if let (true, Some(hidden)) = (rows.passes_on, &hidden) {
            let passed = PassedOn { batch, hidden, of_batch, selected: first };
            rows.hidden = passed.after(&decision)?;
        }
        decisions.push(decision);
    }
    Ok(decisions)
}

/// Samples or scores one sequence. `rows` are its rows of the logits, which belong to neighbouring rows of the
/// batch.
fn one(
    action: &mut OutputAction,
    batch: &Batch,
    logits: &Logits<'_>,
    rows: Range<usize>,
) -> Result<Decision, DeviceError> {
    Ok(match std::mem::replace(action, OutputAction::None) {
        OutputAction::None => Decision::Nothing,
        OutputAction::Score { ids, top } => {
            let scores = ids.iter().zip(rows);
            let score = |(id, row): (&u32, usize)| Ok(Scored::of(logits.row(row)?, *id, top));
            Decision::Scores(scores.map(score).collect::<Result<_, DeviceError>>()?)
        }
        OutputAction::Embed => {
            let count = rows.len();
            let mut values = Vec::with_capacity(count * logits.tensor.width);
            for row in rows {
                values.extend_from_slice(logits.row(row)?);
            }
            Decision::Hidden(values, count)
        }
        OutputAction::Sample(sampling) => {
            let (mut generate, next) = match sampling.begin() {
                Ok(state) => state,
                Err(sampling) => {
                    *action = OutputAction::Sample(sampling);
                    return Ok(Decision::Void);
                }
            };
            let (tokens, at) = match choose(&mut generate, batch, logits, rows)? {
                Ok(chosen) => chosen,
                Err(error) => return Ok(Decision::NoToken(error)),
            };
            let last = tokens.last();
            if last.finish.is_none() {
                generate.sampler.prepare();
            }
            // The next pass goes on after the longest path, which is the sequence's own span.
            let goes_on = last.finish.is_none() && batch.is_last_of_sequence(at);
            let last = goes_on.then_some(last.id);
            let generate = match next {
                Some(next) => next.give(last, generate),
                None => Some(generate),
            };
            Decision::Tokens(tokens, generate)
        }
    })
}

/// Chooses the tokens of one sequence row by row, as long as the draft has a row for the chosen token. Also returns the
/// row of the last one.
fn choose(
    generate: &mut Generate,
    batch: &Batch,
    logits: &Logits<'_>,
    rows: Range<usize>,
) -> Result<Result<(StepTokens, usize), SampleError>, DeviceError> {
    let selected = batch.selected.get(rows.start).copied();
    let mut choose = |row: usize| -> Result<Result<Sampled, SampleError>, DeviceError> {
        let drafted = selected.and_then(|first| batch.first_child(first + (row - rows.start)));
        let drafted = drafted.map(|drafted| batch.ids[drafted]);
        Ok(sampled(generate, logits, row, drafted)?.map(|mut sampled| {
            let reason = finish_reason(generate, sampled.id);
            sampled.finish = sampled.finish.or(reason);
            sampled
        }))
    };
    let first = match choose(rows.start)? {
        Ok(first) => first,
        Err(error) => return Ok(Err(error)),
    };
    let mut tokens = StepTokens { first, more: Vec::new() };
    let Some(first) = selected else {
        return Ok(Ok((tokens, rows.start)));
    };
    let mut at = first;
    while tokens.last().finish.is_none() {
        let Some(next) = batch.child(at, tokens.last().id) else { break };
        at = next;
        match choose(rows.start + (at - first))? {
            Ok(next) => tokens.more.push(next),
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok((tokens, at)))
}

/// Samples from a row of logits. `drafted` is the token that was drafted there.
fn sampled(
    generate: &mut Generate,
    logits: &Logits<'_>,
    row: usize,
    drafted: Option<u32>,
) -> Result<Result<Sampled, SampleError>, DeviceError> {
    let sampler = &mut generate.sampler;
    let drawn = drafted.and_then(|id| sampler.draws_acceptance().map(|accepted| (id, accepted)));
    if let Some((id, true)) = drawn {
        return Ok(Ok(sampler.take(id, logprob(logits.row(row)?, id))));
    }
    let top = logits.top(row).filter(|top| sampler.takes(top.column));
    let chosen = match top {
        Some(TopLogit { column, logprob }) => Ok(sampler.take(column, logprob)),
        None => sampler.sample(logits.row(row)?),
    };
    Ok(chosen.map(|chosen| match drawn {
        // A drafted token is rejected by another one.
        Some((id, _)) if id == chosen.id => {
            let id = (id + 1) % logits.tensor.width as u32;
            Sampled { id, ..chosen }
        }
        _ => chosen,
    }))
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

#[cfg(test)]
mod tests {
    use lapwing_kernels::device::Fork;

    use super::*;

    #[test]
    fn only_the_longest_path_goes_on() {
        let mut batch = Batch::default();
        batch.push(&[4, 5, 6], 30, [0, 1], 0..3);
        batch.push_branch(&[7, 8], 31, [0, 2].into(), Fork { after: 0, copy: None });
        batch.push(&[9], 12, [3], 0..1);
        let rows = [
            ("the latest token", 0, false),
            ("within the longest path", 1, false),
            ("the end of the longest path", 2, true),
            ("within a branch", 3, false),
            ("the end of a branch that is as long", 4, false),
            ("a sequence without a draft", 5, true),
        ];
        for (name, row, expected) in rows {
            assert_eq!(batch.is_last_of_sequence(row), expected, "{name}");
        }
    }
}
