//! Sum of two values.

use super::{OpInfo, OpKind, OpShape, Work};

pub(super) const INFO: OpInfo = OpInfo::new("add", 6, OpKind::Elementwise).in_static_graphs();

pub(super) fn work(at: &OpShape<'_>) -> Work {
    Work::of_values(at.out())
}
