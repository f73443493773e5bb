//! Op graph of a model. It contains no weights, so it can be planned, partitioned and simulated
//! without the weight file.

mod attention;
mod formats;
mod hidden;
mod push;
mod share;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::formats::DType;
use crate::kv::KvLayout;
pub use crate::op::WeightId;
use crate::op::{ExpertsOp, Op, RopeSpec};
use crate::ops::info::OpKind;
use crate::requant::Requant;
use crate::weights::Slices;
pub use push::NewNode;

/// Index of a value in a [`Graph`], for [`Graph::value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub usize);

/// Name, shape and format of a weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightSpec {
    /// Tensor name in the weight file.
    pub name: String,
    /// Output channels (1 for a vector).
    pub rows: usize,
    /// Input channels, or the length of a vector.
    pub cols: usize,
    /// Format used for computation: that of the file, unless the weight is requantised.
    pub dtype: DType,
}

/// The tokens that a value has rows for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSet {
    /// One row per token of the batch.
    All,
    /// One row per token behind the last attention of a model whose hidden states are passed on: all of the batch where some
    /// are wanted ([`Batch::passes_on`](crate::device::Batch::passes_on)), otherwise those whose logits are needed.
    Passed,
    /// One row per token whose logits are needed.
    Selected,
}

/// One op with its inputs and output.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// Values it reads.
    pub inputs: Vec<ValueId>,
    /// Value it writes.
    pub output: ValueId,
    /// Transformer layer; `None` before the first and after the last layer.
    pub layer: Option<usize>,
    /// Role in the model, such as `attn_q`.
    pub role: &'static str,
}

/// Width and rows of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSpec {
    /// Values per row.
    pub width: usize,
    /// Tokens that have a row.
    pub rows: RowSet,
}

/// A model's ops in topological order: every input is written by an earlier node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    nodes: Vec<Node>,
    values: Vec<ValueSpec>,
    /// The last node that reads each value; 0 where none does.
    last_reads: Vec<usize>,
    weights: Vec<WeightSpec>,
    ropes: Vec<RopeSpec>,
    kv: Option<KvLayout>,
    /// Target format and stored format of each requantised weight, by id.
    requant: BTreeMap<usize, (Requant, DType)>,
    /// The parts of a weight's tensor that the graph uses, if not all, by id.
    slices: BTreeMap<usize, Slices>,
    /// The value that is passed on to the end beside the output, if one is.
    passed_on: Option<ValueId>,
}

impl Graph {
    /// The same graph with a KV cache layout, which determines the modelled bytes of attention.
    /// Without one, keys and values count as binary16. Results do not depend on it.
    #[must_use]
    pub fn with_kv(self, layout: KvLayout) -> Graph {
        Graph { kv: Some(layout), ..self }
    }

    /// KV cache layout, if one was set.
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

    /// Number of token ids: the rows of the embedding table that belong to tokens.
    pub fn vocab(&self) -> usize {
        let table = self.nodes.iter().find_map(|node| match node.op {
            Op::Embed { table, .. } => Some(&self.weights[table.0]),
            _ => None,
        });
        table.map_or(0, |table| table.rows)
    }

    /// The value written by the last node: logits `[selected rows, vocab]`, or of an encoder hidden states
    /// `[selected rows, width]`.
    ///
    /// # Panics
    /// If the graph is empty, which no model's graph is.
    pub fn output(&self) -> ValueId {
        self.nodes.last().map(|n| n.output).expect("a model's graph has nodes")
    }

    /// Adds a weight and returns its id.
    pub fn add_weight(&mut self, weight: WeightSpec) -> WeightId {
        self.weights.push(weight);
        WeightId(self.weights.len() - 1)
    }

    /// Adds a weight that is a part of a tensor, and returns its id.
    pub(crate) fn add_part(&mut self, weight: WeightSpec, part: Slices) -> WeightId {
        let id = self.add_weight(weight);
        self.slices.insert(id.0, part);
        id
    }

    /// Values written before `range` and read inside it: the inputs of a stage.
    pub fn live_in(&self, range: Range<usize>) -> Vec<ValueId> {
        let before = &self.last_reads[..range.start];
        let most = before.iter().filter(|last| **last >= range.start).count();
        let mut ids: Vec<ValueId> = Vec::new();
        for node in &self.nodes[range.clone()] {
            if ids.len() == most {
                break;
            }
            for &input in &node.inputs {
                if self.writer(input) < range.start && !ids.contains(&input) {
                    ids.push(input);
                }
            }
        }
        ids
    }

    /// Values written before the end of `range` and read after it, or the graph's output and what is passed on beside it: all
    /// values that a stage passes on, including those that it does not touch.
    pub fn live_out(&self, range: Range<usize>) -> Vec<ValueId> {
        let mut live = match range.end == self.nodes.len() {
            true => vec![self.output()],
            false => self.live_in(range.end..self.nodes.len()),
        };
        let passed = self.passed_on.filter(|value| self.writer(*value) < range.end);
        if let Some(value) = passed.filter(|value| !live.contains(value)) {
            live.push(value);
            live.sort_unstable();
        }
        live
    }

    /// Values written in `range` and read after it, or the graph's output: the outputs of a stage.
    pub fn writes(&self, range: Range<usize>) -> Vec<ValueId> {
        self.live_out(range.clone())
            .into_iter()
            .filter(|v| self.writer(*v) >= range.start)
            .collect()
    }

    /// Whether these nodes can be cut by rows: every value that they read or write has a row for
    /// each token, or can have one, and no row depends on another.
    pub fn can_cut_rows(&self, range: Range<usize>) -> bool {
        self.nodes[range].iter().all(|node| {
            let values = node.inputs.iter().chain([&node.output]);
            !matches!(node.op, Op::Attention(_) | Op::SelectRows)
                && node.op.state().is_none()
                && values.into_iter().all(|v| self.value(*v).rows != RowSet::Selected)
        })
    }

    /// Whether layers keep a state of a sequence, so that its rows must be computed in their order, each once: they cannot be drafts.
    pub fn has_state(&self) -> bool {
        self.nodes.iter().any(|node| node.op.state().is_some())
    }

    /// Whether these nodes can be cut by output channels: they are matmuls of values from before the
    /// range, or element-wise ops, whose inputs and output have the same width.
    pub fn can_cut_features(&self, range: Range<usize>) -> bool {
        self.nodes[range.clone()].iter().all(|node| match node.op.info().kind {
            OpKind::Product => self.writer(node.inputs[0]) < range.start,
            OpKind::Elementwise => true,
            OpKind::Rowwise | OpKind::Dynamic => false,
        })
    }

    /// The experts of these nodes, if they can be cut by them: they are a single op of experts.
    pub fn can_cut_experts(&self, range: Range<usize>) -> Option<&ExpertsOp> {
        match &self.nodes[range] {
            [Node { op: Op::Experts(op), .. }] => Some(op),
            _ => None,
        }
    }

    /// For each node, the values that it writes or reads and no later node reads, except the graph's
    /// output and what is passed on beside it.
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
                && Some(ValueId(value)) != self.passed_on
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
