//! Attention whose keys and values are added up in a state.

use super::{OpInfo, OpKind, OpShape, Work};
use crate::op::{LinearAttentionOp, StateRule};

pub(super) const INFO: OpInfo = OpInfo::new("linear_attention", 28, OpKind::Dynamic);

/// Five operations for each value of the state, of the delta rule seven: what is kept, the product that is added, what is read, and
/// what the key reads before; with decays two more, an exponential counted as one. A few for each value. Beside the factors, the state.
pub(super) fn work(at: &OpShape<'_>, op: &LinearAttentionOp) -> Work {
    let of_state = match op.rule {
        StateRule::Add => 5,
        StateRule::Delta => 7,
    } + 2 * u64::from(op.decay.is_some());
    let of_value = 2 + 2 * u64::from(op.skip.is_some());
    let values = LinearAttentionOp::state_values(op.heads, op.key_dim, op.value_dim) as u64;
    let weights = op.skip.into_iter().chain(op.decay).map(|weight| at.weight_bytes(weight));
    Work {
        flops: at.out() * (of_state * op.key_dim as u64 + of_value),
        bytes: weights.sum::<u64>() + at.state_bytes(op.state, values),
    }
}
