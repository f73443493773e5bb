//! Merges parts that hold no values.

use lapwing_kernels::device::TensorSet;
use lapwing_kernels::graph::{Graph, ValueId};

use crate::message::{Chunk, PartDone};
use lapwing_plan::solve::stage_merge_bytes;

/// As [`merge_parts`](crate::drive::modelled::merge_parts), for parts without values. Only the
/// placeholder logits are passed on.
pub(super) fn merge_shapes(
    chunk: &Chunk,
    parts: Vec<PartDone>,
    graph: &Graph,
) -> Result<(TensorSet, u64), ValueId> {
    let mut whole = TensorSet::default();
    for mut outputs in parts.into_iter().filter_map(|part| part.message.ok()) {
        if let Some(logits) = outputs.take(graph.output()) {
            whole.put(graph.output(), logits);
        }
    }
    let bytes = stage_merge_bytes(graph, chunk.stage(), chunk.batch());
    Ok((whole, bytes))
}
