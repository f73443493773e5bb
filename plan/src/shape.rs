//! The shape of an op, on which its time depends besides its rows; rows and bytes of parts.

use std::ops::Range;

use lapwing_kernels::device::Batch;
use lapwing_kernels::graph::{Graph, RowSet, ValueId};
use lapwing_kernels::mask::Mask;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part};
use serde::{Deserialize, Serialize};

/// Shape of an op. Two nodes of the same shape take the same time for the same rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpShape {
    /// Name of the op, as [`Op::name`].
    pub op: String,
    /// Output channels.
    pub n: usize,
    /// Inner width: of a matmul the width of its input, of a norm the width of a group, of rotary
    /// embedding the rotated values of a head, of attention the total width of keys and values, of a weighted sum the number of
    /// values that are added, of experts their intermediate size, of a convolution the rows that a value depends on, of linear attention the
    /// values of a key; 0 for other ops.
    pub k: usize,
    /// Storage format of the weight, of experts those of their matrices, joined by `+`; `None` without a weight.
    pub dtype: Option<String>,
    /// Sliding window of attention, in positions.
    pub window: Option<usize>,
    /// Mask of attention, if it is neither causal nor a sliding window; in its text form.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "mask_text")]
    pub mask: Option<Mask>,
    /// A matmul with swapped operands: `([K,N]·[N,M])ᵀ` instead of `[M,N]·[N,K]`.
    pub swapped: bool,
    /// Of experts, how many there are and how many each row has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts: Option<[usize; 2]>,
}

impl OpShape {
    /// Shape of a part of a node.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn of(graph: &Graph, node: usize, part: &Part) -> OpShape {
        let (index, node) = (node, &graph.nodes()[node]);
        let n = part.features.of_width(graph.value(node.output).width).len();
        let weight = match &node.op {
            Op::ScaleBy { weight } => Some(*weight),
            Op::ShortConv(op) => Some(op.weight),
            Op::LinearAttention(op) => op.decay,
            Op::RmsNorm { weight, .. } | Op::LayerNorm { weight, .. } => *weight,
            Op::Embed { table, .. } | Op::Lookup { table, .. } | Op::AddRow { table, .. } => {
                Some(*table)
            }
            op => op.matrices().first().copied(),
        };
        let weight = weight.map(|id| &graph.weights()[id.0]);
        let k = match &node.op {
            Op::Attention(_) => graph.kv_width(index),
            Op::Rope { rope, .. } => graph.ropes()[*rope].dims,
            Op::RmsNorm { group, .. } => *group,
            Op::Experts(op) => op.up.rows,
            Op::LinearAttention(op) => op.key_dim,
            Op::WeightedSum { .. } => node.inputs.len().saturating_sub(2),
            _ => weight.map_or(0, |w| w.cols),
        };
        let (window, mask) = match &node.op {
            Op::Attention(op) => match op.seen() {
                Mask::Causal => (None, None),
                Mask::Window(window) => (Some(window), None),
                sparse => (None, Some(sparse)),
            },
            _ => (None, None),
        };
        OpShape {
            op: node.op.name().to_owned(),
            n,
            k,
            dtype: weight.map(|weight| match &node.op {
                Op::Experts(_) => formats(graph, &node.op),
                _ => weight.dtype.to_string(),
            }),
            window,
            mask,
            swapped: part.order == OperandOrder::Swapped && matches!(node.op, Op::MatMul { .. }),
            experts: match &node.op {
                Op::Experts(op) => Some([op.count, op.used]),
                _ => None,
            },
        }
    }

    /// Whether the time depends on the number of rows before it in the KV cache.
    pub fn has_context(&self) -> bool {
        self.op == "attention"
    }

    /// Sum over `m` rows, which follow `context` rows, of the positions that each row attends to.
    pub fn attended(&self, m: usize, context: usize) -> f64 {
        match &self.mask {
            None => attended(m, context, self.window),
            Some(mask) => mask.seen_positions(context as u64, m as u64) as f64,
        }
    }

    /// Work of `m` rows: multiply-adds of a matmul or of a matrix of experts, values of states, output values of any other op.
    pub fn work(&self, m: usize) -> f64 {
        let inner =
            if matches!(&*self.op, "matmul" | "experts" | "linear_attention") { self.k } else { 1 };
        m as f64 * self.n as f64 * inner.max(1) as f64
    }
}

/// Formats of the matrices of an op, each once.
fn formats(graph: &Graph, op: &Op) -> String {
    let mut formats: Vec<String> = Vec::new();
    for weight in op.matrices() {
        let name = graph.weights()[weight.0].dtype.to_string();
        if !formats.contains(&name) {
            formats.push(name);
        }
    }
    formats.join("+")
}

/// Serialises a mask as its text form.
mod mask_text {
    use lapwing_kernels::mask::Mask;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(
        mask: &Option<Mask>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match mask {
            Some(mask) => serializer.collect_str(mask),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Mask>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// Rows that a node computes in a part of a batch.
pub fn rows_of(graph: &Graph, node: usize, part: &Part, batch: &Batch) -> usize {
    match graph.value(graph.nodes()[node].output).rows {
        RowSet::All => part.row_count(batch),
        RowSet::Passed => part.rows.as_ref().map_or(batch.passed_rows(), ExactSizeIterator::len),
        RowSet::Selected => batch.selected.len(),
    }
}

/// Bytes read and written to copy a part's inputs into its static graphs, padding included, and to
/// copy its outputs out of them; 0 for a part without graphs.
///
/// # Panics
/// If a node does not exist.
pub fn convert_bytes(graph: &Graph, nodes: Range<usize>, part: &Part, batch: &Batch) -> u64 {
    if part.graphs.is_empty() || nodes.is_empty() {
        return 0;
    }
    let rows = rows_of(graph, nodes.start, part, batch);
    let (mut loaded, mut buffers) = (0, 0);
    for size in &part.graphs {
        // A graph without a row to run is skipped.
        if loaded < rows {
            (loaded, buffers) = (rows.min(loaded + size), buffers + size);
        }
    }
    let inputs: usize = graph.live_in(nodes.clone()).iter().map(|v| graph.value(*v).width).sum();
    let outputs = graph.writes(nodes).into_iter();
    let outputs: usize = outputs.map(|v| part.features.of_width(graph.value(v).width).len()).sum();
    ((rows + buffers) * inputs + 2 * rows * outputs) as u64 * size_of::<f32>() as u64
}

/// Sum over `m` rows, which follow `context` rows, of the positions that each row attends to.
pub fn attended(m: usize, context: usize, window: Option<usize>) -> f64 {
    let window = window.unwrap_or(usize::MAX).max(1);
    // As long as the window holds all earlier rows, each row attends to one more position.
    let growing = window.saturating_sub(context).min(m);
    let (g, rest) = (growing as f64, (m - growing) as f64);
    let sum = g * context as f64 + g * (g + 1.0) / 2.0;
    if rest > 0.0 { sum + rest * window as f64 } else { sum }
}

/// Bytes read and written to copy values from one memory to another, as f32.
pub fn transfer_bytes(graph: &Graph, values: &[ValueId], batch: &Batch) -> u64 {
    let values = values.iter().map(|id| graph.value(*id));
    let count: usize =
        values.map(|value| value.width * Part::WHOLE.rows_of(value, batch).len()).sum();
    (2 * count * size_of::<f32>()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attended_positions_are_summed_over_the_rows() {
        for (m, context) in [(0, 0), (1, 0), (5, 0), (3, 7), (4, 4), (9, 2)] {
            for window in [None, Some(1), Some(4), Some(6), Some(100)] {
                let slow: usize =
                    (context..context + m).map(|p| (p + 1).min(window.unwrap_or(usize::MAX))).sum();
                assert_eq!(attended(m, context, window), slow as f64, "{m} {context} {window:?}");
            }
        }
    }
}
