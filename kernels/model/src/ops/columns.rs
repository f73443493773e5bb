//! Keeps only some columns, once or several times.

use super::{OpInfo, OpKind, Reads};

pub(super) const INFO: OpInfo =
    OpInfo { reads: Reads::Places, ..OpInfo::new("columns", 18, OpKind::Dynamic) };
