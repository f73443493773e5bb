//! The graph of embeddings: a model without its output matrix.

use super::Graph;
use crate::op::Op;

impl Graph {
    /// The nodes up to the input of the last matmul, the output matrix. The output is that input:
    /// the hidden states after the final norm, `[selected rows, width]`. Nodes, values and weights
    /// keep their numbers, so a device that holds the whole graph runs these nodes as they are. An encoder
    /// has no output matrix: it is the graph itself.
    #[must_use]
    pub fn hidden(&self) -> Graph {
        if self.is_encoder() {
            return self.clone();
        }
        let is_matmul = |node: &super::Node| matches!(node.op, Op::MatMul { .. });
        let head = self.nodes.iter().rfind(|node| is_matmul(node));
        let kept = head.map_or(self.nodes.len(), |head| self.writer(head.inputs[0]) + 1);
        Graph {
            nodes: self.nodes[..kept].to_vec(),
            values: self.values[..kept].to_vec(),
            weights: self.weights.clone(),
            ropes: self.ropes.clone(),
            kv: self.kv.clone(),
            requant: self.requant.clone(),
            slices: self.slices.clone(),
        }
    }
}
