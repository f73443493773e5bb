//! Rows of a table that stays in the weight file.

use super::{OpInfo, OpKind};

pub(super) const INFO: OpInfo =
    OpInfo { reads_table: true, ..OpInfo::new("lookup", 17, OpKind::Dynamic) };
