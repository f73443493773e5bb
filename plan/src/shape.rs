//! What the time of an op depends on, apart from its rows.

use std::ops::Range;

use lapwing_kernels::device::Batch;
use lapwing_kernels::graph::{Graph, RowSet, ValueId};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part};
use serde::{Deserialize, Serialize};

/// Shape of an op: two nodes of the same shape take the same time for the same rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpShape {
    /// Name of the op, as [`Op::name`].
    pub op: String,
    /// Output features.
    pub n: usize,
    /// Inner features: of a product the width of its input, of a norm its group, of attention
    /// the width of keys and values together; 0 where there is none.
    pub k: usize,
    /// Storage format of the weight, if it has one.
    pub dtype: Option<String>,
    /// Sliding window of attention.
    pub window: Option<usize>,
    /// Multiplied with operands swapped (S2-24).
    pub swapped: bool,
}

impl OpShape {
    /// Shape of a part of a node.
    ///
    /// # Panics
    /// When there is no such node.
    pub fn of(graph: &Graph, node: usize, part: &Part) -> OpShape {
        let node = &graph.nodes()[node];
        let n = part.features.of_width(graph.value(node.output).width).len();
        let weight = match &node.op {
            Op::MatMul { weight, .. } | Op::RmsNorm { weight, .. } => Some(*weight),
            Op::Embed { table, .. } => Some(*table),
            _ => None,
        };
        let weight = weight.map(|id| &graph.weights()[id.0]);
        let (k, window) = match &node.op {
            Op::Attention(op) => {
                (node.inputs[1..].iter().map(|v| graph.value(*v).width).sum(), op.window)
            }
            Op::Rope { rope, .. } => (graph.ropes()[*rope].dims, None),
            _ => (weight.map_or(0, |w| w.cols), None),
        };
        OpShape {
            op: node.op.name().to_owned(),
            n,
            k,
            dtype: weight.map(|w| w.dtype.to_string()),
            window,
            swapped: part.order == OperandOrder::Swapped && matches!(node.op, Op::MatMul { .. }),
        }
    }

    /// Whether the time depends on the rows before it in the cache.
    pub fn has_context(&self) -> bool {
        self.op == "attention"
    }

    /// Multiply-adds, or values where there are none, of so many rows.
    pub fn work(&self, m: usize) -> f64 {
        let inner = if self.op == "matmul" { self.k } else { 1 };
        m as f64 * self.n as f64 * inner.max(1) as f64
    }
}

/// Rows of a node in a part of a batch.
pub fn rows_of(graph: &Graph, node: usize, part: &Part, batch: &Batch) -> usize {
    match graph.value(graph.nodes()[node].output).rows {
        RowSet::All => part.row_count(batch),
        RowSet::Selected => batch.selected.len(),
    }
}

/// Bytes read and written to load a part's inputs into its static graphs, padding included, and to
/// read its results from them; 0 for a part without graphs.
///
/// # Panics
/// When there are no such nodes.
pub fn convert_bytes(graph: &Graph, nodes: Range<usize>, part: &Part, batch: &Batch) -> u64 {
    if part.graphs.is_empty() || nodes.is_empty() {
        return 0;
    }
    let rows = rows_of(graph, nodes.start, part, batch);
    let (mut loaded, mut buffers) = (0, 0);
    for size in &part.graphs {
        // Graphs for which no row is left do not run.
        if loaded < rows {
            (loaded, buffers) = (rows.min(loaded + size), buffers + size);
        }
    }
    let inputs: usize = graph.live_in(nodes.clone()).iter().map(|v| graph.value(*v).width).sum();
    let outputs = graph.writes(nodes).into_iter();
    let outputs: usize = outputs.map(|v| part.features.of_width(graph.value(v).width).len()).sum();
    ((rows + buffers) * inputs + 2 * rows * outputs) as u64 * size_of::<f32>() as u64
}

/// Bytes read and written to copy values from one memory to another, as f32.
pub fn transfer_bytes(graph: &Graph, values: &[ValueId], batch: &Batch) -> u64 {
    let values = values.iter().map(|id| graph.value(*id));
    let count: usize =
        values.map(|value| value.width * Part::WHOLE.rows_of(value, batch).len()).sum();
    (2 * count * size_of::<f32>()) as u64
}

/// Sum, over so many rows after `context`, of the positions that each sees.
pub fn seen(m: usize, context: usize, window: Option<usize>) -> f64 {
    let window = window.unwrap_or(usize::MAX).max(1);
    // Rows whose whole past is inside the window see one position more each.
    let growing = window.saturating_sub(context).min(m);
    let (g, rest) = (growing as f64, (m - growing) as f64);
    let sum = g * context as f64 + g * (g + 1.0) / 2.0;
    if rest > 0.0 { sum + rest * window as f64 } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seen_positions_are_the_sum_over_the_rows() {
        for (m, context) in [(0, 0), (1, 0), (5, 0), (3, 7), (4, 4), (9, 2)] {
            for window in [None, Some(1), Some(4), Some(6), Some(100)] {
                let slow: usize =
                    (context..context + m).map(|p| (p + 1).min(window.unwrap_or(usize::MAX))).sum();
                assert_eq!(seen(m, context, window), slow as f64, "{m} {context} {window:?}");
            }
        }
    }
}
