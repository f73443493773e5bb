//! Size of the emulated array and memory of its graphs.

use lapwing_model::device::GraphKey;
use lapwing_model::graph::Graph;

/// The systolic array that [`Systolic`](super::Systolic) stands for, as far as it shapes graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    /// Cells along each side: the row count of a graph is a multiple of this, or smaller.
    pub size: usize,
}

impl Default for Array {
    /// 32 × 32 cells, the size observed on the NPU of HeteroLLM.
    fn default() -> Array {
        Array { size: 32 }
    }
}

/// Bytes that a graph of the software NPU counts towards its device's budget: the f32 buffers of
/// its inputs and outputs. Weights and intermediate values are shared and do not count.
///
/// # Panics
/// If the model's graph has no such nodes.
pub fn graph_bytes(graph: &Graph, key: &GraphKey) -> u64 {
    let inputs = graph.live_in(key.nodes.clone()).into_iter().map(|v| graph.value(v).width);
    let outputs = graph.writes(key.nodes.clone()).into_iter();
    let outputs = outputs.map(|v| key.features.of_width(graph.value(v).width).len());
    let values: u64 = inputs.chain(outputs).map(|width| width as u64).sum();
    key.rows as u64 * values * size_of::<f32>() as u64
}
