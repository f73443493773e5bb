//! Heads of two values, joined.

use super::{OpInfo, OpKind};

pub(super) const INFO: OpInfo = OpInfo::new("join_heads", 22, OpKind::Dynamic);
