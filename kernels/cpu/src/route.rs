//! Choice of experts.

use crate::context::Cpu;
use crate::isa::kernels::Kernels;
use crate::loops::logits::exp;
use lapwing_model::op::{ExpertGroups, RouteOp, RouterScore};
use std::cell::RefCell;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Buffers of a thread.
#[derive(Default)]
struct Scratch {
    scores: Vec<f32>,
    /// The score of each group, then numbers and scores of the best groups.
    groups: [Vec<f32>; 3],
}

/// The experts that each row of `logits` chooses, as numbers, the best first, then their weights:
/// `[rows][2 · used]`. `bias` has a number for each expert. A row whose logits are no numbers chooses
/// experts too, in the total order of floats.
///
/// # Panics
/// When `logits` and `out` do not have the same number of rows, the bias has another length, or a row
/// chooses none or more experts than there are.
pub fn route(ctx: &Cpu, op: &RouteOp, logits: &[f32], bias: Option<&[f32]>, out: &mut [f32]) {
    assert!(op.used > 0, "a row chooses an expert");
    if out.is_empty() {
        return;
    }
    let width = 2 * op.used;
    let rows = out.len() / width;
    let experts = logits.len().checked_div(rows).unwrap_or(0);
    assert!(
        out.len() == rows * width && logits.len() == rows * experts,
        "rows of logits and routes"
    );
    assert!(op.used <= experts, "{} of {experts} experts", op.used);
    assert!(bias.is_none_or(|bias| bias.len() == experts), "the bias is not {experts} values");
    let kernels = ctx.kernels();
    let per_task = ctx.rows_per_task(rows, experts * ROW_WORK);
    ctx.pool().chunks_mut(out, per_task * width, |i, out| {
        let logits = logits[i * per_task * experts..].chunks_exact(experts);
        for (logits, out) in logits.zip(out.chunks_exact_mut(width)) {
            let (chosen, weights) = out.split_at_mut(op.used);
            let row = Router { op, logits, softmax: Softmax::of(kernels, logits) };
            SCRATCH.with_borrow_mut(|scratch| {
                row.fill_scores(bias, scratch);
                choose(&scratch.scores, chosen, weights);
            });
            row.weigh(chosen, weights);
        }
    });
}

/// Work on a logit, in values of an element-wise op.
const ROW_WORK: usize = 8;

/// The terms of a row's softmax.
#[derive(Clone, Copy)]
struct Softmax {
    max: f32,
    sum: f32,
}

impl Softmax {
    fn of(kernels: &Kernels, logits: &[f32]) -> Softmax {
        let max = (kernels.max)(logits);
        Softmax { max, sum: (kernels.sum_exp)(logits, max) as f32 }
    }
}

/// A row of logits.
struct Router<'a> {
    op: &'a RouteOp,
    logits: &'a [f32],
    softmax: Softmax,
}

impl Router<'_> {
    /// The score of an expert, or its logit if only the chosen experts have scores.
    fn score(&self, expert: usize) -> f32 {
        let logit = self.logits[expert];
        match self.op.score {
            RouterScore::Softmax => falling(logit - self.softmax.max) / self.softmax.sum,
            RouterScore::Sigmoid => sigmoid(logit),
            RouterScore::RootSoftplus => softplus(logit).sqrt(),
            RouterScore::ChosenSoftmax | RouterScore::ChosenSigmoid => logit,
        }
    }

    /// What experts are chosen by. Scores rise with the logits, so these do for scores alone: they differ where scores are rounded
    /// to the same number.
    fn fill_scores(&self, bias: Option<&[f32]>, scratch: &mut Scratch) {
        let Scratch { scores, groups: buffers } = scratch;
        scores.clear();
        if bias.is_none() && self.op.groups.is_none() {
            return scores.extend_from_slice(self.logits);
        }
        scores.extend((0..self.logits.len()).map(|expert| self.score(expert)));
        if let Some(bias) = bias {
            scores.iter_mut().zip(bias).for_each(|(score, bias)| *score += bias);
        }
        if let Some(groups) = self.op.groups {
            drop_groups(groups, scores, buffers);
        }
    }

    /// The weights of the chosen experts.
    fn weigh(&self, chosen: &[f32], weights: &mut [f32]) {
        for (weight, expert) in weights.iter_mut().zip(chosen) {
            *weight = self.score(*expert as usize);
        }
        match self.op.score {
            RouterScore::ChosenSoftmax => {
                let max = weights.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                weights.iter_mut().for_each(|weight| *weight = falling(*weight - max));
                let sum: f32 = weights.iter().sum();
                weights.iter_mut().for_each(|weight| *weight /= sum);
            }
            RouterScore::ChosenSigmoid => weights.iter_mut().for_each(|x| *x = sigmoid(*x)),
            RouterScore::Softmax | RouterScore::Sigmoid | RouterScore::RootSoftplus => {}
        }
        if self.op.is_normalised {
            let sum: f32 = weights.iter().sum();
            let sum = if sum < RouteOp::LEAST_SUM { RouteOp::LEAST_SUM } else { sum };
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        weights.iter_mut().for_each(|weight| *weight *= self.op.scale);
    }
}

/// Writes the numbers of the largest scores, the largest first, of equal ones the first. `largest` has
/// room for as many scores.
fn choose(scores: &[f32], chosen: &mut [f32], largest: &mut [f32]) {
    let mut count = 0;
    for (number, score) in scores.iter().enumerate() {
        // Zeros are equal.
        let score = score + 0.0;
        let before = largest[..count].iter().rposition(|other| other.total_cmp(&score).is_ge());
        let place = before.map_or(0, |before| before + 1);
        if place == largest.len() {
            continue;
        }
        count = (count + 1).min(largest.len());
        largest.copy_within(place..count - 1, place + 1);
        chosen.copy_within(place..count - 1, place + 1);
        (largest[place], chosen[place]) = (score, number as f32);
    }
}

/// Makes the scores of all groups −∞ except for those of the best groups.
fn drop_groups(groups: ExpertGroups, scores: &mut [f32], [sums, chosen, best]: &mut [Vec<f32>; 3]) {
    let size = (scores.len() / groups.count.max(1)).max(1);
    let sum_of_best = |group: &[f32]| {
        let [mut chosen, mut best] = [[0.0; 2]; 2];
        let count = group.len().min(2);
        choose(group, &mut chosen[..count], &mut best[..count]);
        best[0] + best[1]
    };
    sums.clear();
    sums.extend(scores.chunks(size).map(sum_of_best));
    for room in [&mut *chosen, &mut *best] {
        room.resize(groups.used.min(sums.len()), 0.0);
    }
    choose(sums, chosen, best);
    for (group, scores) in scores.chunks_mut(size).enumerate() {
        if !chosen.contains(&(group as f32)) {
            scores.fill(f32::NEG_INFINITY);
        }
    }
}

/// eˣ for x ≤ 0; 0 far below.
fn falling(x: f32) -> f32 {
    match x {
        _ if x.is_nan() => x,
        ..-87.0 => 0.0,
        _ => exp(x),
    }
}

/// 1 / (1 + e⁻ˣ).
fn sigmoid(x: f32) -> f32 {
    let power = falling(-x.abs());
    let numerator = if x < 0.0 { power } else { 1.0 };
    numerator / (1.0 + power)
}

/// ln(1 + eˣ).
fn softplus(x: f32) -> f32 {
    let above = if x < 0.0 { 0.0 } else { x };
    above + falling(-x.abs()).ln_1p()
}
