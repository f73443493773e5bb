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
    /// Vector: how much of a value is added to the output, one number for each head, or with decays one for each value.
    pub skip: Option<WeightId>,
    /// Matrix `[heads · value_dim, key_dim]`: the logarithm of what stays of each value of the states in a unit of time (Mamba; Gu and
    /// Dao, 2023).
    pub decay: Option<WeightId>,
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

    /// Numbers of a head in the rate and the skip: one, or with decays one for each value.
    pub fn rates(&self) -> usize {
        self.decay.map_or(1, |_| self.value_dim)
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

    /// The small matrix that it reads as f32 column by column, and in which order.
    pub fn by_column(&self) -> Option<(WeightId, ColumnOrder)> {
        match self {
            Op::ShortConv(op) => Some((op.weight, ColumnOrder::WHOLE)),
            Op::LinearAttention(op) => {
                let order = ColumnOrder { group: op.value_dim, panel: LinearAttentionOp::BLOCK };
                Some((op.decay?, order))
            }
            _ => None,
        }
    }
}

/// An order of the values of a matrix: `[groups][panels][columns][rows of the panel]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnOrder {
    /// Rows of a group.
    pub group: usize,
    /// Rows of a panel; the last one of a group may have fewer.
    pub panel: usize,
}

impl ColumnOrder {
    /// One panel of all rows: one column after another.
    pub const WHOLE: ColumnOrder = ColumnOrder { group: usize::MAX, panel: usize::MAX };

    /// The values of a matrix of rows of `cols` values in this order.
    ///
    /// # Panics
    /// When rows have no values.
    pub fn of(self, values: &[f32], cols: usize) -> Vec<f32> {
        let len = |rows: usize| rows.saturating_mul(cols);
        let groups = values.chunks(len(self.group));
        let panels = groups.flat_map(|group| group.chunks(len(self.panel)));
        let columns = panels.flat_map(|rows| (0..cols).map(|first| &rows[first..]));
        columns.flat_map(|column| column.iter().step_by(cols).copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_panels_of_groups_of_rows() {
        let values: Vec<f32> = (0..10u8).map(f32::from).collect();
        let order = |group, panel| ColumnOrder { group, panel }.of(&values, 2);
        assert_eq!(ColumnOrder::WHOLE.of(&values, 2), [0., 2., 4., 6., 8., 1., 3., 5., 7., 9.]);
        assert_eq!(order(5, 2), [0., 2., 1., 3., 4., 6., 5., 7., 8., 9.]);
        assert_eq!(order(3, 2), [0., 2., 1., 3., 4., 5., 6., 8., 7., 9.]);
    }
}
