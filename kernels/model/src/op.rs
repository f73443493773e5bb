//! Operations of a model's graph: what is computed, never how or where.

mod attention;
mod experts;
mod functions;
mod states;

pub use attention::AttentionOp;
pub use experts::{ExpertForm, ExpertGroups, ExpertMatrix, ExpertsOp, RouteOp, RouterScore};
pub use functions::{Curve, Temperature, Xielu};
pub use states::{ColumnOrder, KeyOrder, LinearAttentionOp, ShortConvOp, StateRule};

/// Index of a weight in [`Graph::weights`](crate::graph::Graph::weights).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WeightId(pub usize);

/// Gating function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x·sigmoid(x).
    Silu,
    /// 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
    GeluTanh,
    /// 1 / (1 + exp(−x)).
    Sigmoid,
}

impl Activation {
    /// Every function.
    pub const ALL: [Activation; 3] = [Activation::Silu, Activation::GeluTanh, Activation::Sigmoid];
}

/// One operation. Every value is a row-major f32 matrix `[rows, width]`, one row per token.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Token ids → rows of `table` `[vocab, width]`, times `scale`.
    Embed {
        /// Embedding table.
        table: WeightId,
        /// Factor on every value.
        scale: f32,
    },
    /// As [`Op::Embed`], for a table that stays in the weight file, from which each row is read.
    Lookup {
        /// The table.
        table: WeightId,
        /// Factor on every value.
        scale: f32,
    },
    /// Rows that are given from outside: those of [`Batch::given`](crate::device::Batch::given).
    Given,
    /// Root-mean-square norm over groups of values: a whole row, or one head of it.
    RmsNorm {
        /// Gain, one value per position in the group; `None` for a gain of 1.
        weight: Option<WeightId>,
        /// Values of a group.
        group: usize,
        /// Added to the mean square.
        eps: f32,
    },
    /// Layer norm of groups, whole rows or single heads: (x − mean) / √(variance + eps) · weight + bias.
    LayerNorm {
        /// Values of a group.
        group: usize,
        /// Gain, one value per position in the row; 1 without it.
        weight: Option<WeightId>,
        /// Offset, one value per position in the row; 0 without it.
        bias: Option<WeightId>,
        /// Added to the variance.
        eps: f32,
    },
    /// Adds a row of `table` `[rows, width]` to each row.
    AddRow {
        /// The table.
        table: WeightId,
        /// Which of its rows.
        row: TableRow,
    },
    /// x·Wᵀ (+ bias).
    MatMul {
        /// Matrix `[out, in]`.
        weight: WeightId,
        /// Vector `[out]`.
        bias: Option<WeightId>,
    },
    /// Rotary position embedding of every head.
    Rope {
        /// Number of heads in the row.
        heads: usize,
        /// Which of the graph's frequency tables.
        rope: usize,
    },
    /// Inputs q, k, v: appends k and v to the sequence's KV cache, then attends under a mask. Input q
    /// alone: attends to the rows that an earlier node has appended in this batch and before.
    Attention(AttentionOp),
    /// Inputs gate, up: activation(gate)·up.
    Gated(Activation),
    /// A function of each value.
    Curve(Curve),
    /// Sum of two values.
    Add,
    /// Product of two values.
    Multiply,
    /// Causal convolution of each column: a row's value is the sum of the column's values in that row and in those before it, each
    /// times a weight. Rows before the sequence count nothing. Those before the batch are the layer's state.
    ShortConv(ShortConvOp),
    /// Inputs q, k, v, keep, rate: each head has a state S `[key_dim, value_dim]`, at first 0. A row makes it keep·S + k·uᵀ with u by
    /// the [`StateRule`], then is scale·Sᵀq + skip·v. keep is one value for each head, or one for each row of S. With decays keep is a time
    /// for each column of S, of which exp(time·decay) stays, and rate and skip are one value for each column.
    LinearAttention(Box<LinearAttentionOp>),
    /// Each row times a factor that grows with its position.
    Temperature(Temperature),
    /// Keeps only the rows whose logits are wanted; the rows of all later values.
    SelectRows,
    /// Keeps some columns, each `times` times side by side; the width of the output says how many.
    Columns {
        /// The first column.
        first: usize,
        /// How often each is there.
        times: usize,
    },
    /// Inputs a, b: the values of each head in a, followed by those in b.
    JoinHeads {
        /// Heads of a and of the output.
        heads: usize,
        /// Whether all heads get the whole of b, instead of a part of it each.
        is_shared: bool,
    },
    /// factor·x.
    Scale {
        /// Factor on every value.
        factor: f32,
    },
    /// Each value times the weight of its column.
    ScaleBy {
        /// Vector of the row's width, or one value for all columns.
        weight: WeightId,
    },
    /// cap·tanh(x/cap).
    SoftCap {
        /// Largest magnitude of the result.
        cap: f32,
    },
    /// Inputs x, c, y₁, y₂, …: x + c₁·y₁ + c₂·y₂ + …, with the coefficients of each row in neighbouring columns of c.
    WeightedSum {
        /// Column of the first coefficient.
        first: usize,
    },
    /// What exceeds the mean of the row by so many standard deviations: max(x − mean − deviations·√(Σ(x − mean)² / (n − 1)), 0).
    Excess {
        /// Standard deviations above the mean.
        deviations: f32,
    },
    /// Inputs x, y: each row of x scaled to the Euclidean length of that of y; a row of zeros stays zero.
    WithLength,
    /// Logits of a router, one for each expert → the numbers of the chosen experts, the best first, then their weights. Of equal
    /// scores that of the smaller number is better.
    Route(RouteOp),
    /// Inputs x and a route: what each expert of the route makes of the row, side by side in the order of the route.
    Experts(Box<ExpertsOp>),
    /// Inputs what [`Op::Experts`] makes and the route: the sum of what the experts of a row have made, in their order.
    Mix {
        /// Experts of a row.
        used: usize,
        /// Whether each one's share is multiplied by its weight.
        is_weighted: bool,
    },
}

/// The row of a table that [`Op::AddRow`] adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableRow {
    /// That of the row's position in its sequence: a learned position embedding.
    Position,
    /// The first, for every row: the token type of a text without a second part.
    First,
    /// That of the row's part of its text: as many as there are tokens `separator` before it, at most the last one. A batch holds
    /// whole texts.
    Part {
        /// The token at the end of each part.
        separator: u32,
    },
}

/// Which values of a head are rotated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopePairs {
    /// Neighbours: (0, 1), (2, 3), … as in Llama's files.
    Adjacent,
    /// Halves: (0, d/2), (1, d/2 + 1), … as in GPT-NeoX.
    Halves,
}

/// How the rotation is stretched beyond the trained context.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// Position / factor.
    Linear {
        /// Stretch factor.
        factor: f32,
    },
    /// YaRN (Peng et al., 2023): interpolates low frequencies, keeps high ones.
    Yarn {
        /// Stretch factor.
        factor: f32,
        /// Context length of the training.
        original_context: usize,
        /// Factor on the magnitude, beside YaRN's own 0.1·ln(factor) + 1.
        attn_factor: f32,
        /// Rotations at which extrapolation ends.
        beta_fast: f32,
        /// Rotations at which interpolation begins.
        beta_slow: f32,
    },
    /// LongRoPE (Ding et al., 2024): frequencies are divided by the factors of [`RopeSpec::factors`].
    LongRope {
        /// Factor on the magnitude.
        attn_factor: f32,
    },
}

/// A rotary embedding: frequencies base^(−2i/dims), scaled.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeSpec {
    /// Base of the frequencies.
    pub base: f32,
    /// Values per head that are rotated; the rest pass.
    pub dims: usize,
    /// Which values form a pair.
    pub pairs: RopePairs,
    /// Stretching.
    pub scaling: RopeScaling,
    /// Vector `[dims / 2]` that divides each frequency (Llama 3).
    pub factors: Option<WeightId>,
}

impl Op {
    /// Ids of the weights that it reads, except for rotary factors.
    pub fn weights(&self) -> impl Iterator<Item = WeightId> + use<> {
        let mut op = self.clone();
        op.weights_mut().into_iter().map(|id| *id).collect::<Vec<_>>().into_iter()
    }

    /// Ids of the matrices that it multiplies with.
    pub fn matrices(&self) -> Vec<WeightId> {
        match self {
            Op::MatMul { weight, .. } => vec![*weight],
            Op::Experts(op) => op.matrices().map(|matrix| matrix.weight).collect(),
            _ => Vec::new(),
        }
    }

    /// Replaces the ids of its weights.
    pub(crate) fn renumber_weights(&mut self, new: impl Fn(WeightId) -> WeightId) {
        self.weights_mut().into_iter().for_each(|id| *id = new(*id));
    }

    fn weights_mut(&mut self) -> Vec<&mut WeightId> {
        match self {
            Op::RmsNorm { weight, .. } => weight.iter_mut().collect(),
            Op::ScaleBy { weight } => vec![weight],
            Op::ShortConv(op) => std::iter::once(&mut op.weight).chain(&mut op.bias).collect(),
            Op::LinearAttention(op) => op.skip.iter_mut().chain(&mut op.decay).collect(),
            Op::LayerNorm { weight, bias, .. } => weight.iter_mut().chain(bias).collect(),
            Op::MatMul { weight, bias } => std::iter::once(weight).chain(bias).collect(),
            Op::Embed { table, .. } | Op::Lookup { table, .. } | Op::AddRow { table, .. } => {
                vec![table]
            }
            Op::Attention(op) => op.sinks.iter_mut().collect(),
            Op::Route(op) => op.bias.iter_mut().collect(),
            Op::Experts(op) => op.weights_mut().collect(),
            Op::Rope { .. }
            | Op::Gated(_)
            | Op::Curve(_)
            | Op::Temperature(_)
            | Op::Add
            | Op::Multiply
            | Op::SelectRows
            | Op::Given
            | Op::Columns { .. }
            | Op::JoinHeads { .. }
            | Op::Scale { .. }
            | Op::SoftCap { .. }
            | Op::WeightedSum { .. }
            | Op::Excess { .. }
            | Op::Mix { .. }
            | Op::WithLength => Vec::new(),
        }
    }

    /// Short name, as shown in reports and timelines.
    pub fn name(&self) -> &'static str {
        self.info().name
    }
}
