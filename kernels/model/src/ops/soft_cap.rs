//! Soft cap of values.

use super::{OpInfo, OpKind, OpShape, Work};

pub(super) const INFO: OpInfo = OpInfo::new("soft_cap", 8, OpKind::Elementwise).in_static_graphs();

pub(super) fn work(at: &OpShape<'_>) -> Work {
    Work::of_values(3 * at.out())
}
