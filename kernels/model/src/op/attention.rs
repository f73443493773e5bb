//! Parameters of attention.

use super::WeightId;
use crate::mask::Mask;

/// Parameters of [`Op::Attention`](super::Op::Attention).
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionOp {
    /// Layer of the KV cache.
    pub layer: usize,
    /// Factor on q·k.
    pub scale: f32,
    /// The architecture's own sliding window: a row at position p sees at most the positions
    /// `max(0, p + 1 − window)..=p`. `None` without one.
    pub window: Option<usize>,
    /// A mask that applies in addition, [`Mask::Causal`] unless
    /// [`set_attention`](crate::graph::Graph::set_attention) chooses another.
    pub mask: Mask,
    /// cap·tanh(score/cap) on every score.
    pub soft_cap: Option<f32>,
    /// Attention with linear biases (Press et al., 2022): the largest slope's exponent, as [`slopes`](AttentionOp::slopes)
    /// has it. `None` without biases.
    pub alibi: Option<f32>,
    /// Attention sinks (Xiao et al., 2023), learned: vector with, for each query head, the score of a key that every row sees and
    /// that has no value, beside those that are scaled and capped. `None` without sinks.
    pub sinks: Option<WeightId>,
}

impl AttentionOp {
    /// The slope of each of `heads` heads, whose product with the distance of a key is subtracted from the score: 2^(−b·i/n) for
    /// the i-th of n heads, n being the largest power of two up to `heads`, and the odd powers of half as large steps for the rest.
    /// `None` without biases.
    pub fn slopes(&self, heads: usize) -> Option<Vec<f32>> {
        let bias = self.alibi?;
        let whole = if heads.is_power_of_two() { heads } else { heads.next_power_of_two() / 2 };
        let slope = |head: usize| match head < whole {
            true => (-bias * (head + 1) as f32 / whole as f32).exp2(),
            false => (-bias / 2.0 * (2 * (head - whole) + 1) as f32 / whole as f32).exp2(),
        };
        Some((0..heads).map(slope).collect())
    }

    /// The keys that a row sees: those of both the mask and the window.
    pub fn seen(&self) -> Mask {
        self.mask.within(self.window)
    }
}
