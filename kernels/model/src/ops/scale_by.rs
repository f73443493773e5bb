//! Values times the weights of their columns.

use super::{OpInfo, OpKind, OpShape, Work};

pub(super) const INFO: OpInfo = OpInfo::new("scale_by", 16, OpKind::Elementwise).in_static_graphs();

pub(super) fn work(at: &OpShape<'_>) -> Work {
    Work::of_values(at.out())
}
