//! Parameters of mixtures of experts.

use super::{Activation, Curve, WeightId};

/// Parameters of [`Op::Route`](super::Op::Route).
#[derive(Clone, Debug, PartialEq)]
pub struct RouteOp {
    /// Experts that are chosen for each row (k).
    pub used: usize,
    /// How a row's logits become scores and weights.
    pub score: RouterScore,
    /// Vector with a number for each expert that is added to its score for the choice, not for its weight.
    pub bias: Option<WeightId>,
    /// Experts are chosen from some groups only.
    pub groups: Option<ExpertGroups>,
    /// Whether the weights are divided by their sum, or by [`LEAST_SUM`](RouteOp::LEAST_SUM) if that is larger.
    pub is_normalised: bool,
    /// Factor on the weights.
    pub scale: f32,
}

impl RouteOp {
    /// Least divisor of the weights: the smallest normal number of binary16, as in llama.cpp.
    pub const LEAST_SUM: f32 = 6.103_515_6e-5;
}

/// How a router's logits become scores, by which experts are chosen, and weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterScore {
    /// The softmax over all experts, for both.
    Softmax,
    /// Sigmoids, for both.
    Sigmoid,
    /// Experts are chosen by their logits, and the weights are the softmax over the chosen ones.
    ChosenSoftmax,
    /// Experts are chosen by their logits, and the weights are sigmoids (Llama 4).
    ChosenSigmoid,
    /// The square root of ln(1 + exp(logit)), for both.
    RootSoftplus,
}

/// Groups of neighbouring experts, all of the same size. The score of a group is the sum of its two best scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertGroups {
    /// Number of groups.
    pub count: usize,
    /// Groups with the best scores, from which experts are chosen.
    pub used: usize,
}

/// Parameters of [`Op::Experts`](super::Op::Experts).
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertsOp {
    /// Number of experts.
    pub count: usize,
    /// Experts of each row (k).
    pub used: usize,
    /// The matrix of gates; `None` without gates.
    pub gate: Option<ExpertMatrix>,
    /// The matrix whose output is gated, or goes through a curve.
    pub up: ExpertMatrix,
    /// What becomes of both.
    pub form: ExpertForm,
    /// The matrix that is multiplied with that.
    pub down: ExpertMatrix,
    /// Whether the weights of the route multiply what an expert reads (Llama 4).
    pub weighs_input: bool,
}

/// The middle of an expert.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExpertForm {
    /// activation(gate)·up.
    Gated(Activation),
    /// max(gate, 0)·up.
    ReluGated,
    /// g·sigmoid(alpha·g)·(up within ± limit + offset) for g = min(gate, gate_limit).
    ClampedGated {
        /// Factor inside the sigmoid.
        alpha: f32,
        /// Largest gate.
        gate_limit: f32,
        /// Largest magnitude of up.
        limit: f32,
        /// What is added to up: 1 in gpt-oss.
        offset: f32,
    },
    /// curve(up).
    Plain(Curve),
}

/// One matrix of each expert, below each other in a matrix `[experts · stride, in]`: expert e has the rows from e·stride + first on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertMatrix {
    /// All of them.
    pub weight: WeightId,
    /// Rows from an expert to the next.
    pub stride: usize,
    /// The first of an expert's rows.
    pub first: usize,
    /// Output channels.
    pub rows: usize,
    /// `[experts, stride]`: a bias for each row of the matrix.
    pub bias: Option<WeightId>,
    /// Vector with a factor for each expert's product, before the bias.
    pub scale: Option<WeightId>,
}

impl ExpertMatrix {
    /// The rows of an expert.
    pub fn rows_of(&self, expert: usize) -> std::ops::Range<usize> {
        let start = expert * self.stride + self.first;
        start..start + self.rows
    }
}

impl ExpertsOp {
    /// The expert of a number in a route. A number that is none is 0, and one that is too large the last.
    pub fn expert_of(&self, number: f32) -> usize {
        (number as usize).min(self.count.saturating_sub(1))
    }

    /// Its matrices, in the order in which they are used.
    pub fn matrices(&self) -> impl Iterator<Item = &ExpertMatrix> {
        self.gate.iter().chain([&self.up, &self.down])
    }

    pub(super) fn weights_mut(&mut self) -> impl Iterator<Item = &mut WeightId> {
        let matrices = self.gate.iter_mut().chain([&mut self.up, &mut self.down]);
        matrices.flat_map(|ExpertMatrix { weight, bias, scale, .. }| {
            [Some(weight), bias.as_mut(), scale.as_mut()].into_iter().flatten()
        })
    }
}
