//! What the experts of a row make together.

use super::{OpInfo, OpKind, OpShape, Work};

pub(super) const INFO: OpInfo = OpInfo::new("mix", 27, OpKind::Rowwise);

/// A multiplication and an addition for each value of each expert.
pub(super) fn work(at: &OpShape<'_>, used: usize) -> Work {
    Work::of_values(2 * at.out() * used as u64)
}
