//! Rows of a table.

use super::{OpInfo, OpKind, OpShape, Work};
use crate::op::WeightId;

pub(super) const INFO: OpInfo =
    OpInfo { reads_table: true, ..OpInfo::new("embed", 0, OpKind::Dynamic) };

pub(super) fn work(at: &OpShape<'_>, table: WeightId) -> Work {
    Work { flops: at.out(), bytes: at.rows * at.row_bytes(table) }
}
