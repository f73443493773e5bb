//! The choice of tokens: the last stage of a route turns logits into tokens or scores, on the host.

use std::ops::Range;

use lapwing_kernels::device::Tensor;
use lapwing_plan::StageWork;

use crate::chunk::{Chunk, OutputAction};
use crate::draft::StepTokens;
use crate::message::{FinishReason, Generate};
use crate::sample::logprob;

/// What was decided for the rows of one sequence.
#[derive(Debug)]
pub enum Decision {
    /// Nothing was asked for.
    Nothing,
    /// Tokens were chosen, with the state that chose them.
    Tokens(StepTokens, Box<Generate>),
    /// Log-probabilities of the tokens to score.
    Scores(Vec<f32>),
    /// The result is not needed any more.
    Void,
    /// No logit is a number, or every token is forbidden.
    NoToken,
}

/// The logits of a chunk are not there, or not in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoLogits;

/// Decides for every sequence of a chunk, in the order of the batch's spans.
///
/// # Errors
/// [`NoLogits`], when the stages before left none.
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
            false => {
                let drafted = &batch.ids[span.rows.clone()];
                one(&mut rows.action, drafted, logits, first..selected)
            }
        });
    }
    Ok(decisions)
}

/// Decides for one sequence with the token ids `ids` of its rows. `rows` are its rows of the logits, the
/// last rows of the sequence.
fn one(action: &mut OutputAction, ids: &[u32], logits: &Tensor, rows: Range<usize>) -> Decision {
    match std::mem::replace(action, OutputAction::None) {
        OutputAction::None => Decision::Nothing,
        OutputAction::Score(targets) => {
            let scores = targets.iter().zip(rows);
            Decision::Scores(scores.map(|(id, row)| logprob(logits.row(row), *id)).collect())
        }
        OutputAction::Sample(mut generate) => {
            let mut choose = |row: usize| {
                let mut sampled = generate.sampler.sample(logits.row(row))?;
                sampled.finish = finish_reason(&mut generate, sampled.id);
                Some(sampled)
            };
            let drafted = &ids[ids.len() - (rows.len() - 1)..];
            let Some(first) = choose(rows.start) else { return Decision::NoToken };
            let mut tokens = StepTokens { first, more: Vec::new() };
            for (row, proposed) in (rows.start + 1..rows.end).zip(drafted) {
                let last = tokens.last();
                if last.finish.is_some() || last.id != *proposed {
                    break;
                }
                let Some(next) = choose(row) else { return Decision::NoToken };
                tokens.more.push(next);
            }
            Decision::Tokens(tokens, generate)
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
