//! Heads: what becomes of the pooled hidden states of a text, such as a score. They are products with one row for a whole text, so
//! they are no ops of a graph.

use crate::graph::WeightSpec;

/// The hidden states of a text that a head reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadInput {
    /// Those of the first token.
    First,
    /// The mean over all tokens.
    Mean,
    /// Those of the last token.
    Last,
}

/// What follows a product of a head, value by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadActivation {
    /// tanh(x).
    Tanh,
    /// x·Φ(x) with the distribution function Φ of the standard normal distribution.
    Gelu,
}

/// A product of a head, and what follows it.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadLayer {
    /// Matrix `[out, in]`.
    pub weight: WeightSpec,
    /// Vector `[out]`.
    pub bias: Option<WeightSpec>,
    /// Function of the result.
    pub activation: Option<HeadActivation>,
    /// Layer norm of what the function gives.
    pub norm: Option<HeadNorm>,
}

/// A layer norm of a head, without a bias.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadNorm {
    /// Vector `[out]`.
    pub weight: WeightSpec,
    /// Added to the variance.
    pub eps: f32,
}

/// A head: its layers, applied one after the other to one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// What the first layer reads.
    pub input: HeadInput,
    /// The layers; at least one.
    pub layers: Vec<HeadLayer>,
    /// Whether the results become probabilities.
    pub softmax: bool,
}

/// The head of an architecture's rerankers, beside the tensors of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RankForm {
    /// What it reads.
    pub(super) input: HeadInput,
    /// What follows `cls.weight`.
    pub(super) activation: HeadActivation,
    /// Whether its results become probabilities.
    pub(super) softmax: bool,
}

impl RankForm {
    /// That of an encoder: it reads the first token, which stands for the whole text.
    pub(super) const OF_ENCODERS: RankForm =
        RankForm { input: HeadInput::First, activation: HeadActivation::Tanh, softmax: false };

    /// That of a decoder: it reads the last token, which has seen all others.
    pub(super) const OF_DECODERS: RankForm =
        RankForm { input: HeadInput::Last, ..RankForm::OF_ENCODERS };
}

impl Head {
    /// Number of its results.
    pub fn outputs(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.weight.rows)
    }
}
