//! Adds a row of a table to each row.

use super::{OpInfo, OpKind, OpShape, Work};
use crate::op::{TableRow, WeightId};

pub(super) const INFO: OpInfo =
    OpInfo { reads_table: true, ..OpInfo::new("add_row", 10, OpKind::Dynamic).for_cpus() };

pub(super) fn work(at: &OpShape<'_>, table: WeightId, row: TableRow) -> Work {
    let read = match row {
        TableRow::Position => at.rows,
        TableRow::First => 1,
        TableRow::Part { .. } => at.rows.min(2),
    };
    Work { flops: at.out(), bytes: read * at.row_bytes(table) }
}
