//! What exceeds the mean of a row by some standard deviations.

use super::{OpInfo, OpKind, OpShape, Work};

pub(super) const INFO: OpInfo = OpInfo::new("excess", 20, OpKind::Rowwise);

/// Sum; subtract, square and add; subtract, and compare.
pub(super) fn work(at: &OpShape<'_>) -> Work {
    Work::of_values(6 * at.out())
}
