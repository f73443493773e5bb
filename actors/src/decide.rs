//! Sampling and scoring: the last stage of a route turns logits into tokens or scores, on the host.

use lapwing_kernels::device::Tensor;
use lapwing_plan::StageWork;

use crate::chunk::{Chunk, OutputAction};
use crate::message::{FinishReason, Generate};
use crate::sample::{Sampled, logprob};

/// The result of the last stage for the rows of one sequence.
#[derive(Debug)]
pub enum Decision {
    /// The rows need no logits.
    Nothing,
    /// The sampled token, with the sampling state.
    Token(Sampled, Box<Generate>),
    /// Natural-log probabilities of the tokens to score.
    Scores(Vec<f32>),
    /// The result is no longer needed.
    Void,
    /// No token can be sampled: every logit is NaN, or every token is forbidden.
    NoToken,
}

/// The logits of a chunk are missing, or are not in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoLogits;

/// Samples or scores every sequence of a chunk, in the order of the batch's spans.
///
/// # Errors
/// [`NoLogits`] when the earlier stages produced none.
pub fn decide(chunk: &mut Chunk) -> Result<Vec<Decision>, NoLogits> {
    let StageWork::Decide { logits } = chunk.stage().work else { return Err(NoLogits) };
    let Chunk { payload, sequences, .. } = chunk;
    let logits = payload.values.get(logits).filter(|tensor| tensor.host().is_some());
    let logits = logits.ok_or(NoLogits)?;
    let batch = &payload.batch;
    let mut selected = 0;
    let mut decisions = Vec::with_capacity(sequences.len());
    for (rows, span) in sequences.iter_mut().zip(&batch.spans) {
        let first = selected;
        selected += batch.selected[first..].iter().take_while(|r| span.rows.contains(r)).count();
        decisions.push(match rows.is_void() {
            true => Decision::Void,
            false => one(&mut rows.action, logits, first..selected),
        });
    }
    Ok(decisions)
}

/// Samples or scores one sequence, whose rows of the logits are `rows`.
fn one(action: &mut OutputAction, logits: &Tensor, rows: std::ops::Range<usize>) -> Decision {
    match std::mem::replace(action, OutputAction::None) {
        OutputAction::None => Decision::Nothing,
        OutputAction::Score(targets) => {
            let scores = targets.iter().zip(rows);
            Decision::Scores(scores.map(|(id, row)| logprob(logits.row(row), *id)).collect())
        }
        OutputAction::Sample(mut generate) => {
            match generate.sampler.sample(logits.row(rows.start)) {
                None => Decision::NoToken,
                Some(mut sampled) => {
                    sampled.finish = finish_reason(&mut generate, sampled.id);
                    Decision::Token(sampled, generate)
                }
            }
        }
    }
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
