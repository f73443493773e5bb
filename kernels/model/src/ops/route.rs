//! Choice of experts.

use super::{OpInfo, OpKind, OpShape, Work};
use crate::op::RouteOp;

pub(super) const INFO: OpInfo = OpInfo::new("route", 25, OpKind::Rowwise);

/// For each expert four operations on its score and a comparison with each of those that are chosen, and three for each weight.
pub(super) fn work(at: &OpShape<'_>, op: &RouteOp) -> Work {
    let experts = at.graph.value(at.graph.nodes()[at.node].inputs[0]).width as u64;
    let used = op.used as u64;
    Work {
        flops: at.rows * (experts * (4 + used) + 3 * used),
        bytes: op.bias.map_or(0, |bias| at.weight_bytes(bias)),
    }
}
