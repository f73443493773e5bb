//! Keeps only the rows whose output is wanted.

use super::{OpInfo, OpKind, Reads, Work};

pub(super) const INFO: OpInfo =
    OpInfo { reads: Reads::Places, ..OpInfo::new("select_rows", 7, OpKind::Dynamic) };

pub(super) fn work() -> Work {
    Work::default()
}
