//! Rows that are given from outside.

use super::{OpInfo, OpKind, OpShape, Work};

pub(super) const INFO: OpInfo = OpInfo::new("given", 29, OpKind::Dynamic).for_cpus();

/// A copy of the rows, which are not values of the graph.
pub(super) fn work(at: &OpShape<'_>) -> Work {
    Work { flops: 0, bytes: 4 * at.out() }
}
