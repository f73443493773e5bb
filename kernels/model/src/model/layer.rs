//! What a layer has of its own.

use crate::kv::KvHeads;
use crate::op::LinearAttentionOp;

/// Heads of a layer's attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerHeads {
    /// Query heads; 0 in a layer without attention.
    pub count: usize,
    /// Key and value heads (GQA: fewer than `count`; MQA: 1; 0 without attention over positions), and the values of each. Queries
    /// are as long as keys.
    pub kv: KvHeads,
    /// Values per head that rotary embedding rotates.
    pub rope_dims: usize,
    /// The layer whose keys and values it reads: itself, unless layers share them.
    pub kv_of: usize,
}

impl LayerHeads {
    /// Values of the queries of all heads.
    pub fn q_width(&self) -> usize {
        self.count * self.kv.key_dim
    }

    /// Values of what all heads make of the values.
    pub fn mixed_width(&self) -> usize {
        self.count * self.kv.value_dim
    }
}

/// Ranks of latent attention: values of the rows per token from which products make the keys and values of all heads, and perhaps
/// the queries. [`LayerHeads::rope_dims`] values at the end of each key rotate, and are the same for all heads.
///
/// Of absorbed attention the latent row is the value, and with the rotated values behind it the key, of all heads: the products that
/// would make keys and values are applied to queries, and to what attention makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatentRanks {
    /// Values of the row for keys and values.
    pub kv: usize,
    /// Values of the row for queries; `None` if the hidden states are multiplied at once.
    pub queries: Option<usize>,
    /// Values of a head's key.
    pub key_dim: usize,
    /// Values of a head's value.
    pub value_dim: usize,
    /// Whether attention is absorbed.
    pub is_absorbed: bool,
}

/// Sizes of linear attention with a convolution before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecurrentSizes {
    /// Rows that a value of the convolution depends on.
    pub taps: usize,
    /// Heads of values.
    pub heads: usize,
    /// Heads of queries and keys.
    pub key_heads: usize,
    /// Values of a query and of a key.
    pub key_dim: usize,
    /// Values of a value.
    pub value_dim: usize,
    /// Norms of what makes the steps of Mamba, and of its keys and queries.
    pub step_norms: StepNorms,
}

/// Norms of what makes the steps of Mamba, and of its keys and queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepNorms {
    /// None.
    None,
    /// Without weights.
    WithoutWeights,
    /// With weights.
    Weighted,
}

impl RecurrentSizes {
    /// Values of all keys, and of all queries.
    pub fn key_width(&self) -> usize {
        self.key_heads * self.key_dim
    }

    /// Values of all values.
    pub fn value_width(&self) -> usize {
        self.heads * self.value_dim
    }

    /// Columns of the convolution: queries, keys and values.
    pub fn conv_width(&self) -> usize {
        2 * self.key_width() + self.value_width()
    }

    /// Values of the states of a layer: the last rows before a convolution of so many columns, and what its heads keep.
    pub fn states(&self, conv_width: usize) -> Vec<usize> {
        let conv = (self.taps - 1) * conv_width;
        vec![conv, LinearAttentionOp::state_values(self.heads, self.key_dim, self.value_dim)]
    }
}

/// Attention of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerAttention {
    /// Over every earlier position.
    Full,
    /// Over the last positions, as many as this number.
    Window(usize),
    /// Over the positions from the last multiple of this number on.
    Chunk(usize),
}

/// Layers whose attention has sinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkLayers {
    /// None.
    None,
    /// Those for which the file has them.
    Some,
    /// All.
    All,
}
