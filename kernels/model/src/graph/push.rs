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
        let spec = ValueSpec { width: node.width, rows };
        let NewNode { op, inputs, layer, role, .. } = node;
        self.add_node(Node { op, inputs: inputs.to_vec(), output, layer, role }, spec);
        output
    }

    /// Adds a node, and the value that it writes.
    pub(super) fn add_node(&mut self, node: Node, writes: ValueSpec) {
        node.inputs.iter().for_each(|input| self.last_reads[input.0] = self.nodes.len());
        self.values.push(writes);
        self.last_reads.push(0);
        self.nodes.push(node);
    }
}
