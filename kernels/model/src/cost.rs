//! Cost of an op: floating-point operations and bytes, from shapes alone.
//!
//! A multiply-add counts as two operations, any function of one number (exp, tanh, division) as one.
//! Bytes are the minimum that a device must move: every input and weight is read once per batch, and
//! every output is written once.

use std::ops::AddAssign;

use crate::device::Batch;
use crate::graph::{Graph, Node, ValueId, WeightId};
use crate::op::Op;
use crate::ops::{OpShape, Reads, matrix_bytes, part_of};
use crate::part::Part;

/// Bytes of an activation value (f32).
const VALUE: u64 = 4;

/// Cost of one or more ops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Floating-point operations.
    pub flops: u64,
    /// Bytes read and written.
    pub bytes: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.flops = self.flops.saturating_add(other.flops);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl Graph {
    /// Cost of a node (an index into [`nodes`](Graph::nodes)) over a batch.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn cost(&self, node: usize, batch: &Batch) -> Cost {
        self.part_cost(node, &Part::WHOLE, batch)
    }

    /// Stored bytes of the matrices, keys, values, sinks and states that a batch reads or writes. If the model is
    /// larger than the CPU caches, each batch moves them through memory again.
    pub fn stored_bytes(&self, batch: &Batch) -> u64 {
        let of = |(i, node): (usize, &Node)| match &node.op {
            Op::MatMul { weight, .. } if self.rows_of(node.output, &Part::WHOLE, batch) > 0 => {
                self.weight_bytes(*weight)
            }
            Op::Attention(_) | Op::Experts(_) => node.op.work(&self.whole(i, batch)).bytes,
            op if op.state().is_some() => op.work(&self.whole(i, batch)).bytes,
            _ => 0,
        };
        self.nodes().iter().enumerate().map(of).sum()
    }

    /// Bytes of the matrices of a part of a node: the stored rows of a matmul, or of as many experts as its rows touch on average.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn matrix_bytes(&self, node: usize, part: &Part, batch: &Batch) -> u64 {
        let output = self.nodes()[node].output;
        let features = part.features.of_width(self.value(output).width).len() as u64;
        match &self.nodes()[node].op {
            Op::MatMul { weight, .. } => features * self.row_bytes(*weight),
            Op::Experts(op) => {
                let all = matrix_bytes(self, op, self.rows_of(output, part, batch));
                part_of(all, self.expert_share(node, part))
            }
            _ => 0,
        }
    }

    fn whole<'a>(&'a self, node: usize, batch: &'a Batch) -> OpShape<'a> {
        let output = self.nodes()[node].output;
        let rows = self.rows_of(output, &Part::WHOLE, batch);
        OpShape { graph: self, node, batch, rows, features: self.value(output).width as u64 }
    }

    /// Cost of a part of a node. Attention cannot be cut, so it has its full cost.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn part_cost(&self, node: usize, part: &Part, batch: &Batch) -> Cost {
        let (index, node) = (node, &self.nodes()[node]);
        let rows = self.rows_of(node.output, part, batch);
        let features = part.features.of_width(self.value(node.output).width).len() as u64;
        let share = self.expert_share(index, part);
        let out = part_of(rows * features, share);
        if out == 0 {
            // Devices skip a node without rows and read no weights for it.
            return Cost::default();
        }
        let read = match node.op.info().reads {
            Reads::Inputs => {
                node.inputs.iter().map(|value| self.values_of(*value, part, batch)).sum()
            }
            Reads::Places => node.inputs.len() as u64 * out,
        };
        let work = node.op.work(&OpShape { graph: self, node: index, batch, rows, features });
        let [flops, bytes] = [work.flops, work.bytes].map(|all| part_of(all, share));
        Cost { flops, bytes: VALUE * (read + out) + bytes }
    }

    /// Bytes of keys and values of one position in a layer of the KV cache; `values` is their number together.
    pub(crate) fn kv_row_bytes(&self, layer: usize, values: u64) -> u64 {
        match self.kv().filter(|layout| layer < layout.layers.len()) {
            None => 2 * values,
            Some(layout) => layout.layer(layer).row_bytes() as u64,
        }
    }

    fn rows_of(&self, value: ValueId, part: &Part, batch: &Batch) -> u64 {
        part.rows_of(self.value(value), batch).len() as u64
    }

    fn values_of(&self, value: ValueId, part: &Part, batch: &Batch) -> u64 {
        self.rows_of(value, part, batch) * self.value(value).width as u64
    }

    pub(crate) fn row_bytes(&self, weight: WeightId) -> u64 {
        let spec = &self.weights()[weight.0];
        // No device can read a weight whose rows are not whole blocks.
        spec.dtype.row_bytes(spec.cols).unwrap_or(0) as u64
    }

    pub(crate) fn weight_bytes(&self, weight: WeightId) -> u64 {
        self.row_bytes(weight) * self.weights()[weight.0].rows as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::DType;
    use crate::graph::{NewNode, WeightSpec};
    use crate::kv::{KvDtype, KvHeads, KvLayout};
    use crate::mask::{AttentionRule, Mask};
    use crate::op::{Activation, AttentionOp, RopePairs, RopeScaling, RopeSpec};

    /// embed 64 → q 32, k 16, v 16 → rope → attention → select → matmul with bias → …
    fn graph(window: Option<usize>) -> Graph {
        graph_with(window, false)
    }

    fn graph_with(window: Option<usize>, has_sinks: bool) -> Graph {
        let mut g = Graph::default();
        let mut weight = |name: &str, rows, cols, dtype| {
            g.add_weight(WeightSpec { name: name.into(), rows, cols, dtype })
        };
        let table = weight("t", 100, 64, DType::Q8_0);
        let gain = weight("g", 1, 64, DType::F32);
        let wide = weight("q", 32, 64, DType::Q4_0);
        let narrow = weight("k", 16, 64, DType::F16);
        let bias = weight("b", 1, 16, DType::F32);
        let sinks = has_sinks.then(|| weight("s", 1, 2, DType::F32));
        let rope = g.add_rope(RopeSpec {
            base: 1e4,
            dims: 8,
            pairs: RopePairs::Halves,
            scaling: RopeScaling::None,
            factors: None,
        });
        let mut push = |op, inputs: &[ValueId], width| {
            g.push(NewNode { op, inputs, width, layer: None, role: "test" })
        };
        let x = push(Op::Embed { table, scale: 1.0 }, &[], 64);
        let x = push(Op::RmsNorm { weight: Some(gain), group: 64, eps: 1e-5 }, &[x], 64);
        let q = push(Op::MatMul { weight: wide, bias: None }, &[x], 32);
        let k = push(Op::MatMul { weight: narrow, bias: Some(bias) }, &[x], 16);
        let q = push(Op::Rope { heads: 2, rope }, &[q], 32);
        let op = AttentionOp {
            layer: 0,
            scale: 1.0,
            window,
            mask: Mask::Causal,
            soft_cap: None,
            alibi: None,
            sinks,
        };
        let y = push(Op::Attention(op), &[q, k, k], 32);
        let z = push(Op::SelectRows, &[y], 32);
        let z = push(Op::Gated(Activation::Silu), &[z, z], 32);
        let z = push(Op::Add, &[z, z], 32);
        push(Op::SoftCap { cap: 30.0 }, &[z], 32);
        g
    }

    /// Rows 5, 6, 7 of one sequence and row 9 of another; the last of each is selected.
    fn batch() -> Batch {
        let mut batch = Batch::default();
        batch.push(&[1, 2, 3], 5, vec![0], 2..3);
        batch.push(&[4], 9, vec![1], 0..1);
        batch
    }

    #[test]
    fn costs_equal_hand_counted_ones() {
        let (g, b) = (graph(None), batch());
        let rows = [
            // 4 rows of 64 in Q8_0: two blocks of 34 bytes; 256 values written.
            ("embed", 256, 4 * 68 + 1024),
            ("norm", 4 * 256, 1024 + 1024 + 256),
            // 2·4·64·32; weights 32 rows of two 18-byte blocks.
            ("matmul", 16_384, 32 * 36 + 1024 + 512),
            ("matmul with bias", 8192 + 64, 16 * 128 + 64 + 1024 + 256),
            // 2 heads · 8 values · 4 rows · 3.
            ("rope", 192, 512 + 512),
            // Rows see 6 + 7 + 8 and 10 positions: 31 · 4 · 32. Read 8 and 10 positions, write 3
            // and 1: 22 · 2 · 32 bytes.
            ("attention", 31 * 128, 22 * 64 + 512 + 256 + 256 + 512),
            ("select", 0, 2 * 256),
            ("gated", 5 * 64, 3 * 256),
            ("add", 64, 3 * 256),
            ("soft cap", 3 * 64, 2 * 256),
        ];
        assert_eq!(rows.len(), g.nodes().len());
        for (node, (name, flops, bytes)) in rows.into_iter().enumerate() {
            assert_eq!(g.cost(node, &b), Cost { flops, bytes }, "{name}");
        }
        assert_eq!(g.stored_bytes(&b), 32 * 36 + 16 * 128 + 22 * 64);
    }

    #[test]
    fn attention_bytes_follow_the_kv_format() {
        // 22 positions read or written, each of 2 heads of 8 keys and 8 values.
        let wants = [(KvDtype::F32, 22 * 128), (KvDtype::F16, 22 * 64), (KvDtype::I8, 22 * 48)];
        for (dtype, want) in wants {
            let layout = KvLayout::uniform(3, KvHeads::new(2, 8), 32, dtype);
            let cost = graph(None).with_kv(layout).cost(5, &batch());
            assert_eq!(cost, Cost { flops: 31 * 128, bytes: want + 1536 }, "{dtype}");
        }
    }

    #[test]
    fn sinks_are_read_once() {
        let (cost, plain) = (graph_with(None, true), graph(None));
        let [cost, plain] = [cost, plain].map(|graph| graph.cost(5, &batch()));
        assert_eq!(cost, Cost { bytes: plain.bytes + 2 * 4, ..plain });
    }

    #[test]
    fn nodes_without_selected_rows_cost_nothing() {
        let mut batch = batch();
        batch.selected.clear();
        let costs: Vec<Cost> = (0..10).map(|node| graph(None).cost(node, &batch)).collect();
        assert!(costs[..6].iter().all(|cost| cost.bytes > 0 && cost.flops > 0));
        assert_eq!(costs[6..], [Cost::default(); 4]);
    }

    #[test]
    fn positions_before_the_window_cost_nothing() {
        // Window 7: rows at 5, 6, 7 see 6, 7, 7; the row at 9 sees 7. Read: 0..8 and 3..10.
        let cost = graph(Some(7)).cost(5, &batch());
        assert_eq!(cost.flops, 27 * 128);
        assert_eq!(cost.bytes, (8 + 7 + 4) * 64 + 1536);
    }

    #[test]
    fn attention_costs_follow_the_mask() {
        // Two keys of each row: 5, 2; 6, 3; 7, 4; and 9, 6. Blocks of four keys within a window of
        // seven: 0–3, 0–3 and 1–3 for the rows at 5, 6 and 7, of which all are read; 8 and 9.
        for (rule, seen, read) in
            [("dilated=2x3", 8, 6 + 2), ("block-sparse=4:1-0,2-2", 4 + 4 + 3 + 2, 4 + 2)]
        {
            let mut graph = graph(Some(7));
            let rule: AttentionRule = rule.parse().expect("a rule");
            graph.set_attention(std::slice::from_ref(&rule)).expect("a mask");
            let cost = graph.cost(5, &batch());
            assert_eq!(cost.flops, seen * 128, "{rule}");
            assert_eq!(cost.bytes, (read + 4) * 64 + 1536, "{rule}");
        }
    }

    #[test]
    fn seen_positions_are_the_sum_over_the_rows() {
        for start in 0..12 {
            for rows in 0..12 {
                for window in [1, 2, 5, 11, 12, 23, u64::MAX] {
                    let slow: u64 = (start..start + rows).map(|p| (p + 1).min(window)).sum();
                    let mask = Mask::Window(usize::try_from(window).expect("64 bits"));
                    let seen = mask.seen_positions(start, rows);
                    assert_eq!(seen, slow, "{start} {rows} {window}");
                }
            }
        }
    }
}
