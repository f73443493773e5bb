//! Hidden states: the graph of embeddings, which is a model without its output matrix, and rows that one model gives to another.

use super::{Graph, ValueId};
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
        let mut hidden = Graph {
            weights: self.weights.clone(),
            ropes: self.ropes.clone(),
            kv: self.kv.clone(),
            requant: self.requant.clone(),
            slices: self.slices.clone(),
            ..Graph::default()
        };
        for (node, value) in self.nodes.iter().zip(&self.values).take(kept) {
            hidden.add_node(node.clone(), *value);
        }
        hidden
    }

    /// Passes a value on to the end of the graph, beside the output: hidden states that another model is given.
    pub fn pass_on(&mut self, value: ValueId) {
        self.passed_on = Some(value);
    }

    /// The value that is passed on to the end beside the output, if one is.
    pub fn passed_on(&self) -> Option<ValueId> {
        self.passed_on
    }

    /// Values of a row that is given from outside; 0 if none are.
    pub fn given_width(&self) -> usize {
        let given = self.nodes.iter().find(|node| matches!(node.op, Op::Given));
        given.map_or(0, |node| self.value(node.output).width)
    }
}
