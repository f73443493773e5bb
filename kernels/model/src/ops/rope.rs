//! Rotary position embedding.

use super::{OpInfo, OpKind, OpShape, Work};

pub(super) const INFO: OpInfo = OpInfo::new("rope", 3, OpKind::Dynamic);

/// Four multiplications and two additions for each pair.
pub(super) fn work(at: &OpShape<'_>, heads: usize, rope: usize) -> Work {
    Work::of_values(3 * at.rows * (heads * at.graph.ropes()[rope].dims) as u64)
}
