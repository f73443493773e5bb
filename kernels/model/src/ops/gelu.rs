//! The exact GELU.

use super::{OpInfo, OpKind, OpShape, Work};

pub(super) const INFO: OpInfo = OpInfo::new("gelu", 11, OpKind::Elementwise).of_encoders();

/// A polynomial of degree 5, an exponential and a division.
pub(super) fn work(at: &OpShape<'_>) -> Work {
    Work::of_values(18 * at.out())
}
