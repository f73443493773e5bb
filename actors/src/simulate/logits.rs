//! Logits of devices that compute nothing.

use lapwing_kernels::device::{StageRun, Tensor};
use lapwing_kernels::graph::Graph;

/// What a device without values writes: a zero for each row whose logits are wanted, from which
/// sampling makes a token.
pub(super) fn put_logits(graph: &Graph, work: &mut StageRun<'_>) {
    let logits = graph.output();
    if work.writes.contains(&logits) {
        let rows = work.batch.selected.len();
        work.outputs.put(logits, Tensor::new(1, vec![0.0; rows]));
    }
}
