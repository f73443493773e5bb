//! Rows scaled to the lengths of others.

use super::{OpInfo, OpKind, OpShape, Work};

pub(super) const INFO: OpInfo = OpInfo::new("with_length", 21, OpKind::Rowwise);

/// Squares and their sums for both rows, and a multiplication.
pub(super) fn work(at: &OpShape<'_>) -> Work {
    Work::of_values(5 * at.out())
}
