//! Product with a matrix.

use super::{OpInfo, OpKind, OpShape, Work};
use crate::op::WeightId;

pub(super) const INFO: OpInfo = OpInfo::new("matmul", 2, OpKind::Product).in_static_graphs();

pub(super) fn work(at: &OpShape<'_>, weight: WeightId, bias: Option<WeightId>) -> Work {
    let weights = at.graph.weights();
    let inner = weights[weight.0].cols as u64;
    let added = if bias.is_some() { at.out() } else { 0 };
    let of_bias =
        |bias: WeightId| at.features * at.row_bytes(bias) / (weights[bias.0].cols as u64).max(1);
    Work {
        flops: 2 * at.out() * inner + added,
        bytes: at.features * at.row_bytes(weight) + bias.map_or(0, of_bias),
    }
}
