//! Op graph of a model: pure data, no weights inside, so that it can be planned, cut and
//! simulated without the weight file.

mod formats;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::kv::KvLayout;
pub use crate::op::WeightId;
use crate::op::{Op, RopeSpec};
use crate::quant::DType;
use crate::requant::Requant;

/// Index of a value in a [`Graph`], as in [`Graph::value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub usize);

/// Name, shape and format of a weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightSpec {
    /// Tensor name in the weight file.
    pub name: String,
    /// Output features (1 for a vector).
    pub rows: usize,
    /// Input features, or the length of a vector.
    pub cols: usize,
    /// Format that is computed with: that of the file, unless the weight is requantised.
    pub dtype: DType,
}

/// Which tokens a value has rows for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSet {
    /// One row per token of the batch.
    All,
    /// One row per token whose logits are wanted.
    Selected,
}

/// One op with its inputs and its output.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What is computed.
    pub op: Op,
    /// Values read.
    pub inputs: Vec<ValueId>,
    /// Value written.
    pub output: ValueId,
    /// Layer it belongs to; `None` before the first and after the last.
    pub layer: Option<usize>,
    /// Role in the model, such as `attn_q`.
    pub role: &'static str,
}

/// Values of the graph: width and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSpec {
    /// Values per row.
    pub width: usize,
    /// Which tokens have a row.
    pub rows: RowSet,
}

/// A model's ops in topological order: every input is written by an earlier node (S3-11).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    nodes: Vec<Node>,
    values: Vec<ValueSpec>,
    weights: Vec<WeightSpec>,
    ropes: Vec<RopeSpec>,
    kv: Option<KvLayout>,
    /// Of requantised weights, by id: to what, and the format of the file.
    requant: BTreeMap<usize, (Requant, DType)>,
}

impl Graph {
    /// The same graph, told how keys and values are stored, which changes no result but what
    /// attention is taken to cost. Untold, they count as binary16.
    #[must_use]
    pub fn with_kv(self, layout: KvLayout) -> Graph {
        Graph { kv: Some(layout), ..self }
    }

    /// How keys and values are stored, if it was told.
    pub fn kv(&self) -> Option<&KvLayout> {
        self.kv.as_ref()
    }

    /// Ops in execution order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Number of values.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Width and rows of a value.
    pub fn value(&self, id: ValueId) -> ValueSpec {
        self.values[id.0]
    }

    /// Weights in the order of their ids.
    pub fn weights(&self) -> &[WeightSpec] {
        &self.weights
    }

    /// Rotary embeddings, by the index in [`Op::Rope`].
    pub fn ropes(&self) -> &[RopeSpec] {
        &self.ropes
    }

    /// Adds a rotary embedding and returns its index.
    pub fn add_rope(&mut self, rope: RopeSpec) -> usize {
        self.ropes.push(rope);
        self.ropes.len() - 1
    }

    /// The value written by the last node: logits `[selected rows, vocab]`.
    ///
    /// # Panics
    /// On an empty graph, which no model builds.
    pub fn output(&self) -> ValueId {
        self.nodes.last().map(|n| n.output).expect("a model's graph has nodes")
    }

    /// Adds a weight and returns its id.
    pub fn add_weight(&mut self, weight: WeightSpec) -> WeightId {
        self.weights.push(weight);
        WeightId(self.weights.len() - 1)
    }

    /// Appends a node whose inputs exist already, and returns the value that it writes.
    ///
    /// # Panics
    /// When an input has not been written yet: the order of nodes is their execution order.
    pub fn push(&mut self, node: NewNode<'_>) -> ValueId {
        assert!(node.inputs.iter().all(|v| v.0 < self.values.len()), "input before its writer");
        let output = ValueId(self.values.len());
        let selected = matches!(node.op, Op::SelectRows)
            || node.inputs.first().is_some_and(|v| self.value(*v).rows == RowSet::Selected);
        let rows = if selected { RowSet::Selected } else { RowSet::All };
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

    /// Values written before `range` and read inside it: what a stage needs handed in.
    pub fn live_in(&self, range: Range<usize>) -> Vec<ValueId> {
        let mut ids: Vec<ValueId> = Vec::new();
        for node in &self.nodes[range.clone()] {
            for &input in &node.inputs {
                if self.writer(input) < range.start && !ids.contains(&input) {
                    ids.push(input);
                }
            }
        }
        ids
    }

    /// Values written at or before the end of `range` and read after it (or the graph's
    /// output): what a stage must hand on, those that merely pass through included.
    pub fn live_out(&self, range: Range<usize>) -> Vec<ValueId> {
        if range.end == self.nodes.len() {
            return vec![self.output()];
        }
        self.live_in(range.end..self.nodes.len())
    }

    /// Values written in `range` and read after it, or the graph's output: what a stage adds to
    /// what passes through it.
    pub fn writes(&self, range: Range<usize>) -> Vec<ValueId> {
        self.live_out(range.clone())
            .into_iter()
            .filter(|v| self.writer(*v) >= range.start)
            .collect()
    }

    /// Whether the tokens of these nodes can be divided: every value that they read or write has
    /// a row for each token, and no row depends on another.
    pub fn can_cut_rows(&self, range: Range<usize>) -> bool {
        self.nodes[range].iter().all(|node| {
            let values = node.inputs.iter().chain([&node.output]);
            !matches!(node.op, Op::Attention(_) | Op::SelectRows)
                && values.into_iter().all(|v| self.value(*v).rows == RowSet::All)
        })
    }

    /// Whether the features of what these nodes write can be divided: matrix products of values
    /// from before the range, and element-wise ops, whose inputs all have the same width.
    pub fn can_cut_features(&self, range: Range<usize>) -> bool {
        self.nodes[range.clone()].iter().all(|node| match node.op {
            Op::MatMul { .. } => self.writer(node.inputs[0]) < range.start,
            Op::Gated(_) | Op::Add | Op::SoftCap { .. } => true,
            _ => false,
        })
    }

    /// For each node, the values whose last reader it is and which nothing reads later.
    pub fn last_uses(&self) -> Vec<Vec<ValueId>> {
        let mut last: Vec<Option<usize>> = vec![None; self.values.len()];
        for (i, node) in self.nodes.iter().enumerate() {
            last[node.output.0] = Some(i);
            for v in &node.inputs {
                last[v.0] = Some(i);
            }
        }
        let mut dead = vec![Vec::new(); self.nodes.len()];
        for (value, node) in last.into_iter().enumerate() {
            if let Some(node) = node
                && ValueId(value) != self.output()
            {
                dead[node].push(ValueId(value));
            }
        }
        dead
    }

    /// Every value has one writer and values are numbered in the order of their writers.
    fn writer(&self, value: ValueId) -> usize {
        value.0
    }
}

/// Argument of [`Graph::push`].
#[derive(Clone, Debug)]
pub struct NewNode<'a> {
    /// What is computed.
    pub op: Op,
    /// Values read.
    pub inputs: &'a [ValueId],
    /// Width of the value written.
    pub width: usize,
    /// Layer, if any.
    pub layer: Option<usize>,
    /// Role in the model.
    pub role: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Activation;

    fn node<'a>(op: Op, inputs: &'a [ValueId]) -> NewNode<'a> {
        NewNode { op, inputs, width: 4, layer: None, role: "test" }
    }

    fn diamond() -> Graph {
        let mut g = Graph::default();
        let table =
            g.add_weight(WeightSpec { name: "t".into(), rows: 2, cols: 4, dtype: DType::F32 });
        let a = g.push(node(Op::Embed { table, scale: 1.0 }, &[]));
        let b = g.push(node(Op::SoftCap { cap: 1.0 }, &[a]));
        let c = g.push(node(Op::Gated(Activation::Silu), &[a, b]));
        let d = g.push(node(Op::SelectRows, &[c]));
        g.push(node(Op::SoftCap { cap: 2.0 }, &[d]));
        g
    }

    #[test]
    fn a_value_that_skips_a_stage_is_still_handed_on() {
        let g = diamond();
        assert_eq!(g.live_in(0..2), vec![]);
        assert_eq!(g.live_out(0..1), vec![ValueId(0)]);
        assert_eq!(g.live_out(1..2), vec![ValueId(0), ValueId(1)]);
        assert_eq!(g.live_in(2..5), vec![ValueId(0), ValueId(1)]);
        assert_eq!(g.live_out(2..5), vec![ValueId(4)]);
    }

    #[test]
    fn values_die_at_their_last_reader_and_the_output_never() {
        let dead = diamond().last_uses();
        assert_eq!(dead[1], vec![]);
        assert_eq!(dead[2], vec![ValueId(0), ValueId(1)]);
        assert_eq!(dead[4], vec![ValueId(3)]);
        assert!(dead.iter().flatten().all(|v| *v != ValueId(4)));
    }

    #[test]
    fn rows_are_selected_from_the_select_node_on() {
        let g = diamond();
        assert_eq!(g.value(ValueId(2)).rows, RowSet::All);
        assert_eq!(g.value(ValueId(3)).rows, RowSet::Selected);
        assert_eq!(g.value(ValueId(4)).rows, RowSet::Selected);
    }

    #[test]
    #[should_panic(expected = "input before its writer")]
    fn a_node_cannot_read_what_is_not_written_yet() {
        let mut g = Graph::default();
        g.push(node(Op::Add, &[ValueId(0), ValueId(1)]));
    }
}
