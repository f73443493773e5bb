//! How a graph uses its weights.

use lapwing_model::graph::Graph;
use lapwing_model::op::{ColumnOrder, Op};

/// How a graph uses a weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uses {
    pub(super) vector: bool,
    /// The order in which the vector has its columns, if it is not that of the file.
    pub(super) by_column: Option<ColumnOrder>,
    pub(super) matmul: bool,
    pub(super) table: bool,
}

/// How a graph uses each of its weights.
pub(super) fn uses(graph: &Graph) -> Vec<Uses> {
    let mut uses = vec![Uses::default(); graph.weights().len()];
    for node in graph.nodes() {
        if let Some((weight, order)) = node.op.by_column() {
            let used = &mut uses[weight.0];
            *used = Uses { vector: true, by_column: Some(order), ..*used };
        }
        match &node.op {
            Op::RmsNorm { weight: Some(weight), .. } | Op::ScaleBy { weight } => {
                uses[weight.0].vector = true;
            }
            Op::LayerNorm { weight, bias, .. } => {
                weight.iter().chain(bias).for_each(|id| uses[id.0].vector = true);
            }
            Op::Attention(op) => op.sinks.iter().for_each(|sinks| uses[sinks.0].vector = true),
            // Its rows are read in order and often, so all of them are kept in f32.
            Op::AddRow { table, .. } => uses[table.0].vector = true,
            Op::ShortConv(op) => op.bias.iter().for_each(|bias| uses[bias.0].vector = true),
            Op::LinearAttention(op) => op.skip.iter().for_each(|skip| uses[skip.0].vector = true),
            Op::MatMul { weight, bias } => {
                uses[weight.0].matmul = true;
                if let Some(bias) = bias {
                    uses[bias.0].vector = true;
                }
            }
            Op::Route(op) => op.bias.iter().for_each(|bias| uses[bias.0].vector = true),
            Op::Experts(op) => {
                for matrix in op.matrices() {
                    uses[matrix.weight.0].matmul = true;
                    let vectors = matrix.bias.iter().chain(&matrix.scale);
                    vectors.for_each(|id| uses[id.0].vector = true);
                }
            }
            Op::Embed { table, .. } | Op::Lookup { table, .. } => uses[table.0].table = true,
            _ => {}
        }
    }
    for factors in graph.ropes().iter().filter_map(|rope| rope.factors) {
        uses[factors.0].vector = true;
    }
    uses
}
