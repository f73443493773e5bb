//! Ops that keep a state of the rows before.

use super::{Op, WeightId};

/// Parameters of [`Op::ShortConv`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortConvOp {
    /// Matrix `[columns, rows]`: the weights of each column, that of the row itself last.
    pub weight: WeightId,
    /// Vector `[columns]` that is added to the sums.
    pub bias: Option<WeightId>,
    /// Whether the result is x·sigmoid(x) of the sum x.
    pub is_silu: bool,
    /// Which of the states of [`KvLayout::states`](crate::kv::KvLayout::states).
    pub state: usize,
}

/// Parameters of [`Op::LinearAttention`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearAttentionOp {
    /// Heads of values, each of which has a state.
    pub heads: usize,
    /// Heads of queries and keys, a divisor of the heads of values.
    pub key_heads: usize,
    /// Which queries and keys a head has.
    pub key_order: KeyOrder,
    /// Values of a query and of a key.
    pub key_dim: usize,
    /// Values of a value and of an output.
    pub value_dim: usize,
    /// The columns of their inputs where queries, keys and values begin.
    pub first: [usize; 3],
    /// What a row adds to the state.
    pub rule: StateRule,
    /// Factor on what is read from the state.
    pub scale: f32,
    /// Vector `[heads]`: how much of a value is added to the output.
    pub skip: Option<WeightId>,
    /// Which of the states of [`KvLayout::states`](crate::kv::KvLayout::states).
    pub state: usize,
}

/// Which head of queries and keys a head of values has, of which several share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// Neighbours share one.
    Blocks,
    /// Heads have them by turns.
    Turns,
}

/// What a row adds to the state S of a head: the product of its key k with a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateRule {
    /// rate·v (Mamba-2; Dao and Gu, 2024).
    Add,
    /// rate·(v − Sᵀk), so that the state then has more of v at k (gated delta rule; Yang et al., 2024).
    Delta,
}

impl LinearAttentionOp {
    /// Columns of a state that are stored together.
    pub const BLOCK: usize = 16;

    /// Values of the state of all heads. That of a head is `[blocks][key_dim][BLOCK]`; columns of the last block that are none are
    /// not used.
    pub const fn state_values(heads: usize, key_dim: usize, value_dim: usize) -> usize {
        heads * key_dim * value_dim.next_multiple_of(LinearAttentionOp::BLOCK)
    }

    /// The head of queries and keys that a head of values has.
    pub fn key_head(&self, head: usize) -> usize {
        match self.key_order {
            KeyOrder::Blocks => head / (self.heads / self.key_heads),
            KeyOrder::Turns => head % self.key_heads,
        }
    }
}

impl Op {
    /// Which of the states of [`KvLayout::states`](crate::kv::KvLayout::states) it keeps, if it keeps one.
    pub fn state(&self) -> Option<usize> {
        match self {
            Op::ShortConv(op) => Some(op.state),
            Op::LinearAttention(op) => Some(op.state),
            _ => None,
        }
    }
}
