//! Nodes that are added to a graph.

use super::{Graph, Node, RowSet, ValueId, ValueSpec};
use crate::op::Op;

/// Argument of [`Graph::push`].
#[derive(Clone, Debug)]
pub struct NewNode<'a> {
    /// The operation.
    pub op: Op,
    /// Values it reads.
    pub inputs: &'a [ValueId],
    /// Values per row of the output.
    pub width: usize,
    /// Transformer layer, if any.
    pub layer: Option<usize>,
    /// Role in the model, such as `attn_q`.
    pub role: &'static str,
}

impl Graph {
    /// Appends a node and returns the value that it writes. Nodes run in the order in which they are
    /// appended.
    ///
    /// # Panics
    /// If no earlier node writes one of the inputs.
    pub fn push(&mut self, node: NewNode<'_>) -> ValueId {
        let first = node.inputs.first().and_then(|v| self.values.get(v.0));
        let rows = match node.op {
            Op::SelectRows => RowSet::Selected,
            _ => first.map_or(RowSet::All, |value| value.rows),
        };
        self.push_of(node, rows)
    }

    /// As [`push`](Graph::push), of an [`Op::SelectRows`] that keeps [`RowSet::Passed`].
    ///
    /// # Panics
    /// As [`push`](Graph::push).
    pub fn push_passed(&mut self, node: NewNode<'_>) -> ValueId {
        self.push_of(node, RowSet::Passed)
    }

    fn push_of(&mut self, node: NewNode<'_>, rows: RowSet) -> ValueId {
        assert!(node.inputs.iter().all(|v| v.0 < self.values.len()), "input before its writer");
        let output = ValueId(self.values.len());
        self.values.push(ValueSpec { width: node.width, rows });
        self.nodes.push(Node {
            op: node.op,
            inputs: node.inputs.to_vec(),
            output,
            layer: node.layer,
            role: node.role,
        });
        output
    }
}
