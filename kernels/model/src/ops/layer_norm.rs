//! Layer norm of a row.

use super::{OpInfo, OpKind, OpShape, Work};
use crate::op::WeightId;

pub(super) const INFO: OpInfo = OpInfo::new("layer_norm", 9, OpKind::Rowwise).of_encoders();

/// Sum; subtract, square and add; subtract, multiply by the factor and the gain, and add.
pub(super) fn work(at: &OpShape<'_>, weight: WeightId, bias: WeightId) -> Work {
    Work { flops: 8 * at.out(), bytes: at.weight_bytes(weight) + at.weight_bytes(bias) }
}
