//! Placeholder logits of devices that compute no values.

use lapwing_kernels::device::{StageRun, Tensor};
use lapwing_kernels::graph::Graph;

/// Writes one zero logit for each row that needs logits; sampling turns each into token 0.
pub(super) fn put_logits(graph: &Graph, work: &mut StageRun<'_>) {
    let logits = graph.output();
    if work.writes.contains(&logits) {
        let rows = work.batch.selected.len();
        work.outputs.put(logits, Tensor::new(1, vec![0.0; rows]));
    }
}
