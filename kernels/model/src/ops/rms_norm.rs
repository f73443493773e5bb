//! Root-mean-square norm.

use super::{OpInfo, OpKind, OpShape, Work};
use crate::op::WeightId;

pub(super) const INFO: OpInfo = OpInfo::new("rms_norm", 1, OpKind::Rowwise).in_static_graphs();

/// Square and add; multiply by the factor and by the gain.
pub(super) fn work(at: &OpShape<'_>, weight: Option<WeightId>) -> Work {
    match weight {
        Some(weight) => Work { flops: 4 * at.out(), bytes: at.weight_bytes(weight) },
        None => Work::of_values(3 * at.out()),
    }
}
