//! Layer norm of a row.

use super::{OpInfo, OpKind, OpShape, Work};
use crate::op::WeightId;

pub(super) const INFO: OpInfo = OpInfo::new("layer_norm", 9, OpKind::Rowwise);

/// Sum; subtract, square and add; subtract, multiply by the factor and the gain, and add.
pub(super) fn work(at: &OpShape<'_>, weights: [Option<WeightId>; 2]) -> Work {
    let bytes = weights.into_iter().flatten().map(|weight| at.weight_bytes(weight)).sum();
    Work { flops: 8 * at.out(), bytes }
}
