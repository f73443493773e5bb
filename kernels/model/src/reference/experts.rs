//! Mixtures of experts.

#[cfg(test)]
mod tests;

use super::{activation, curve, sigmoid};
use crate::op::{ExpertForm, RouteOp, RouterScore};

/// The experts that a row's `logits` choose, the best first, with their weights. `bias` has a number for each expert.
pub fn route(op: &RouteOp, logits: &[f32], bias: Option<&[f32]>) -> Vec<(usize, f64)> {
    let logits: Vec<f64> = logits.iter().map(|x| f64::from(*x)).collect();
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let all: f64 = logits.iter().map(|x| (x - max).exp()).sum();
    let score = |x: &f64| match op.score {
        RouterScore::Softmax => (x - max).exp() / all,
        RouterScore::Sigmoid => sigmoid(*x),
        RouterScore::RootSoftplus => x.exp().ln_1p().sqrt(),
        RouterScore::ChosenSoftmax | RouterScore::ChosenSigmoid => *x,
    };
    let scores: Vec<f64> = logits.iter().map(score).collect();
    let biased = |i: usize| scores[i] + bias.map_or(0.0, |bias| f64::from(bias[i]));
    let mut known: Vec<f64> = (0..scores.len()).map(biased).collect();
    if let Some(groups) = op.groups {
        let size = known.len() / groups.count;
        let of_group = |group: &[f64]| {
            let mut group = group.to_vec();
            group.sort_by(|a, b| b.total_cmp(a));
            group[0] + group[1]
        };
        let sums: Vec<f64> = known.chunks(size).map(of_group).collect();
        let kept = best(&sums, groups.used);
        for (i, score) in known.iter_mut().enumerate() {
            if !kept.contains(&(i / size)) {
                *score = f64::NEG_INFINITY;
            }
        }
    }
    let chosen = best(&known, op.used);
    let mut weights: Vec<f64> = chosen.iter().map(|i| scores[*i]).collect();
    match op.score {
        RouterScore::ChosenSoftmax => {
            let all: f64 = weights.iter().map(|x| (x - max).exp()).sum();
            weights.iter_mut().for_each(|x| *x = (*x - max).exp() / all);
        }
        RouterScore::ChosenSigmoid => weights.iter_mut().for_each(|x| *x = sigmoid(*x)),
        _ => {}
    }
    if op.is_normalised {
        let sum = weights.iter().sum::<f64>().max(f64::from(RouteOp::LEAST_SUM));
        weights.iter_mut().for_each(|x| *x /= sum);
    }
    chosen.into_iter().zip(weights.iter().map(|x| x * f64::from(op.scale))).collect()
}

/// The places of the `count` largest values, the largest first, of equal ones the first.
fn best(values: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    order.truncate(count);
    order
}

/// The middle of an expert: what becomes of a value of `up` and its gate, which is not read without gates.
pub fn expert_middle(form: ExpertForm, gate: f64, up: f64) -> f64 {
    match form {
        ExpertForm::Gated(kind) => activation(kind, gate) * up,
        ExpertForm::ReluGated => {
            let open = if gate < 0.0 { 0.0 } else { gate };
            open * up
        }
        ExpertForm::ClampedGated { alpha, gate_limit, limit, offset } => {
            let [alpha, gate_limit, limit, offset] =
                [alpha, gate_limit, limit, offset].map(f64::from);
            let gate = gate.min(gate_limit);
            gate * sigmoid(alpha * gate) * (up.clamp(-limit, limit) + offset)
        }
        ExpertForm::Plain(kind) => curve(kind, up),
    }
}
