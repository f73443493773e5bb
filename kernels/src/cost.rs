//! Cost of an op: floating-point operations and bytes, from shapes alone.
//!
//! A multiply-add counts as two operations, any function of one number (exp, tanh, division) as one.
//! Bytes are the minimum that a device must move: every input and weight is read once per batch, and
//! every output is written once.

use std::ops::AddAssign;

use crate::device::Batch;
use crate::graph::{Graph, Node, ValueId, WeightId};
use crate::op::{Activation, AttentionOp, Op, TableRow};
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

    /// Stored bytes of the matrices, keys and values that a batch reads or writes. If the model is
    /// larger than the CPU caches, each batch moves them through memory again.
    pub fn stored_bytes(&self, batch: &Batch) -> u64 {
        let of = |(i, node): (usize, &Node)| match &node.op {
            Op::MatMul { weight, .. } if self.rows_of(node.output, (&Part::WHOLE, batch)) > 0 => {
                self.weight_bytes(*weight)
            }
            Op::Attention(op) => self.attention_cost(i, op, batch).1,
            _ => 0,
        };
        self.nodes().iter().enumerate().map(of).sum()
    }

    /// Cost of a part of a node. Attention cannot be cut, so it has its full cost.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn part_cost(&self, node: usize, part: &Part, batch: &Batch) -> Cost {
        let (index, node) = (node, &self.nodes()[node]);
        let at = (part, batch);
        let rows = self.rows_of(node.output, at);
        let features = part.features.of_width(self.value(node.output).width).len() as u64;
        let out = rows * features;
        if out == 0 {
            // Devices skip a node without rows and read no weights for it.
            return Cost::default();
        }
        let inputs = |of: &dyn Fn(ValueId) -> u64| node.inputs.iter().map(|i| of(*i)).sum::<u64>();
        let mut read = inputs(&|v| self.values_of(v, at));
        let (flops, extra) = match &node.op {
            Op::Embed { table, .. } => {
                let bytes = rows * self.row_bytes(*table);
                return Cost { flops: out, bytes: bytes + VALUE * out };
            }
            Op::SelectRows => return Cost { flops: 0, bytes: 2 * VALUE * out },
            // Square and add; multiply by the factor and by the gain.
            Op::RmsNorm { weight, .. } => (4 * out, self.weight_bytes(*weight)),
            // Sum; subtract, square and add; subtract, multiply by the factor and the gain, and add.
            Op::LayerNorm { weight, bias, .. } => {
                (8 * out, self.weight_bytes(*weight) + self.weight_bytes(*bias))
            }
            Op::AddRow { table, row: TableRow::Position } => (out, rows * self.row_bytes(*table)),
            Op::AddRow { table, row: TableRow::First } => (out, self.row_bytes(*table)),
            Op::MatMul { weight, bias } => {
                let inner = self.weights()[weight.0].cols as u64;
                let added = if bias.is_some() { out } else { 0 };
                let bias = bias.map_or(0, |bias| features * self.row_bytes(bias) / self.len(bias));
                (2 * out * inner + added, features * self.row_bytes(*weight) + bias)
            }
            // Four multiplications and two additions for each pair.
            Op::Rope { heads, rope } => (3 * rows * (heads * self.ropes()[*rope].dims) as u64, 0),
            Op::Attention(op) => self.attention_cost(index, op, batch),
            Op::Gated(activation) => {
                read = 2 * out;
                (if *activation == Activation::Silu { 5 * out } else { 10 * out }, 0)
            }
            // A polynomial of degree 5, an exponential and a division.
            Op::Gelu => {
                read = out;
                (18 * out, 0)
            }
            Op::Add => {
                read = 2 * out;
                (out, 0)
            }
            Op::Scale { .. } => {
                read = out;
                (out, 0)
            }
            Op::SoftCap { .. } => {
                read = out;
                (3 * out, 0)
            }
        };
        Cost { flops, bytes: VALUE * (read + out) + extra }
    }

    /// Operations of q·k and of the weighted sum of v over the positions that each row attends to,
    /// and KV cache bytes: new rows are written, unless another layer has
    /// written them, and attended positions are read once per sequence.
    fn attention_cost(&self, node: usize, op: &AttentionOp, batch: &Batch) -> (u64, u64) {
        let (inputs, kv_width) = (&self.nodes()[node].inputs, self.kv_width(node) as u64);
        let q_width = self.value(inputs[0]).width as u64;
        let mask = op.seen();
        let (mut seen, mut touched) = (0, 0);
        for span in &batch.spans {
            let (start, rows) = (span.start as u64, span.rows.len() as u64);
            seen += mask.seen_positions(start, rows);
            touched += mask.read_positions(start, rows) + if inputs.len() > 1 { rows } else { 0 };
        }
        (4 * seen * q_width, touched * self.kv_row_bytes(kv_width))
    }

    /// Bytes of keys and values of one position in one layer; `values` is their number together.
    fn kv_row_bytes(&self, values: u64) -> u64 {
        match self.kv() {
            None => 2 * values,
            Some(layout) => layout.row_bytes() as u64,
        }
    }

    fn rows_of(&self, value: ValueId, (part, batch): (&Part, &Batch)) -> u64 {
        part.rows_of(self.value(value), batch).len() as u64
    }

    fn values_of(&self, value: ValueId, at: (&Part, &Batch)) -> u64 {
        self.rows_of(value, at) * self.value(value).width as u64
    }

    /// Number of values of a vector.
    fn len(&self, vector: WeightId) -> u64 {
        (self.weights()[vector.0].cols as u64).max(1)
    }

    fn row_bytes(&self, weight: WeightId) -> u64 {
        let spec = &self.weights()[weight.0];
        // No device can read a weight whose rows are not whole blocks.
        spec.dtype.row_bytes(spec.cols).unwrap_or(0) as u64
    }

    fn weight_bytes(&self, weight: WeightId) -> u64 {
        self.row_bytes(weight) * self.weights()[weight.0].rows as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::DType;
    use crate::graph::{NewNode, WeightSpec};
    use crate::kv::{KvDtype, KvLayout};
    use crate::mask::{AttentionRule, Mask};
    use crate::op::{RopePairs, RopeScaling, RopeSpec};

    /// embed 64 → q 32, k 16, v 16 → rope → attention → select → matmul with bias → …
    fn graph(window: Option<usize>) -> Graph {
        let mut g = Graph::default();
        let mut weight = |name: &str, rows, cols, dtype| {
            g.add_weight(WeightSpec { name: name.into(), rows, cols, dtype })
        };
        let table = weight("t", 100, 64, DType::Q8_0);
        let gain = weight("g", 1, 64, DType::F32);
        let wide = weight("q", 32, 64, DType::Q4_0);
        let narrow = weight("k", 16, 64, DType::F16);
        let bias = weight("b", 1, 16, DType::F32);
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
        let x = push(Op::RmsNorm { weight: gain, eps: 1e-5 }, &[x], 64);
        let q = push(Op::MatMul { weight: wide, bias: None }, &[x], 32);
        let k = push(Op::MatMul { weight: narrow, bias: Some(bias) }, &[x], 16);
        let q = push(Op::Rope { heads: 2, rope }, &[q], 32);
        let op = AttentionOp { layer: 0, scale: 1.0, window, mask: Mask::Causal, soft_cap: None };
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
            let layout = KvLayout { layers: 3, kv_heads: 2, head_dim: 8, page_rows: 32, dtype };
            let cost = graph(None).with_kv(layout).cost(5, &batch());
            assert_eq!(cost, Cost { flops: 31 * 128, bytes: want + 1536 }, "{dtype}");
        }
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
