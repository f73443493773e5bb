//! Attention over the KV cache.

use super::{OpInfo, OpKind, OpShape, Work};
use crate::op::AttentionOp;

pub(super) const INFO: OpInfo = OpInfo::new("attention", 4, OpKind::Dynamic);

/// Attention whose rows see later ones.
pub(super) const FULL: OpInfo = OpInfo::new("attention", 12, OpKind::Dynamic).for_cpus();

/// Attention with linear biases.
pub(super) const BIASED: OpInfo = OpInfo::new("attention", 14, OpKind::Dynamic).for_cpus();

/// Operations of q·k and of the weighted sum of v over the positions that each row attends to, and bytes of the sinks and of the
/// KV cache: new rows are written, unless another layer has written them, and attended positions are read once per sequence.
pub(super) fn work(at: &OpShape<'_>, op: &AttentionOp) -> Work {
    let graph = at.graph;
    let (inputs, kv_width) = (&graph.nodes()[at.node].inputs, graph.kv_width(at.node) as u64);
    let q_width = graph.value(inputs[0]).width as u64;
    let mixed_width = graph.value(graph.nodes()[at.node].output).width as u64;
    let mask = op.seen();
    let (mut seen, mut touched) = (0, 0);
    for span in &at.batch.spans {
        let (start, rows) = (span.start as u64, span.rows.len() as u64);
        seen += mask.seen_positions(start, rows);
        touched += mask.read_positions(start, rows) + if inputs.len() > 1 { rows } else { 0 };
    }
    let sinks = op.sinks.map_or(0, |sinks| at.weight_bytes(sinks));
    Work {
        flops: 2 * seen * (q_width + mixed_width),
        bytes: touched * graph.kv_row_bytes(op.layer, kv_width) + sinks,
    }
}
