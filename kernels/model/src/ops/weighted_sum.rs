//! A value and others times coefficients of each row.

use super::{OpInfo, OpKind, OpShape, Work};

pub(super) const INFO: OpInfo = OpInfo::new("weighted_sum", 19, OpKind::Rowwise);

/// A multiplication and an addition for each value that is added.
pub(super) fn work(at: &OpShape<'_>) -> Work {
    let added = at.graph.nodes()[at.node].inputs.len().saturating_sub(2) as u64;
    Work::of_values(2 * at.out() * added)
}
