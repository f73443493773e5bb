//! Product of two values.

use super::{OpInfo, OpKind, OpShape, Work};

pub(super) const INFO: OpInfo = OpInfo::new("multiply", 23, OpKind::Elementwise);

pub(super) fn work(at: &OpShape<'_>) -> Work {
    Work::of_values(at.out())
}
