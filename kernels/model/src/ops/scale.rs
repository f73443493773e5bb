//! Values times a factor.

use super::{OpInfo, OpKind, OpShape, Work};

pub(super) const INFO: OpInfo = OpInfo::new("scale", 13, OpKind::Elementwise).in_static_graphs();

pub(super) fn work(at: &OpShape<'_>) -> Work {
    Work::of_values(at.out())
}
