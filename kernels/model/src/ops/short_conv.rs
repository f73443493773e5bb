//! Causal convolution over a few rows.

use super::{OpInfo, OpKind, OpShape, Work};
use crate::op::ShortConvOp;

pub(super) const INFO: OpInfo = OpInfo::new("short_conv", 24, OpKind::Dynamic);

/// A multiplication and an addition for each row that a value depends on, an addition of the bias, and as many operations for the
/// activation as where it gates. Beside the weights, the state.
pub(super) fn work(at: &OpShape<'_>, op: ShortConvOp) -> Work {
    let taps = at.graph.weights()[op.weight.0].cols as u64;
    let each = 2 * taps + u64::from(op.bias.is_some()) + 5 * u64::from(op.is_silu);
    let weights = std::iter::once(op.weight).chain(op.bias).map(|weight| at.weight_bytes(weight));
    let state = at.state_bytes(op.state, (taps - taps.min(1)) * at.features);
    Work { flops: each * at.out(), bytes: weights.sum::<u64>() + state }
}

#[cfg(test)]
mod tests {
    use crate::cost::Cost;
    use crate::device::Batch;
    use crate::formats::DType;
    use crate::graph::{Graph, NewNode, WeightSpec};
    use crate::kv::{KvDtype, KvHeads, KvLayout, StateLayout};
    use crate::op::{Op, ShortConvOp};

    #[test]
    fn a_state_is_read_once_and_written_wherever_it_is_kept() {
        let mut graph = Graph::default();
        let spec = |name: &str, rows, cols| WeightSpec {
            name: name.to_owned(),
            rows,
            cols,
            dtype: DType::F32,
        };
        let (table, weight) = (spec("t", 9, 8), spec("c", 8, 3));
        let (table, weight) = (graph.add_weight(table), graph.add_weight(weight));
        let mut push = |op, inputs: &[_]| {
            graph.push(NewNode { op, inputs, width: 8, layer: None, role: "test" })
        };
        let x = push(Op::Embed { table, scale: 1.0 }, &[]);
        let op = ShortConvOp { weight, bias: None, is_silu: false, state: 0 };
        push(Op::ShortConv(op), &[x]);
        let mut batch = Batch::default();
        // Rows 0 to 4 of one sequence, whose state is also kept after 4 of them, and row 8 of another.
        batch.push(&[1; 5], 0, vec![0, 1], 0..0);
        batch.spans[0].states.keep.push((4, 7));
        batch.push(&[1], 8, vec![2, 3, 4], 0..0);
        let flops = 2 * 3 * 6 * 8;
        let (values, weights) = (4 * 2 * 6 * 8, 4 * 3 * 8);
        let with = |moved: u64| Cost { flops, bytes: values + weights + moved * 4 * 16 };
        assert_eq!(graph.cost(1, &batch), with(2 + 2), "without pages");
        let layout = KvLayout::uniform(0, KvHeads::new(0, 0), 4, KvDtype::F16);
        let states = [StateLayout { values: 16 }].into();
        let graph = graph.with_kv(KvLayout { states, ..layout });
        assert_eq!(graph.cost(1, &batch), with(2 + 2));
    }
}
