//! Causal convolution over a few rows.

use super::{OpInfo, OpKind, OpShape, Work};
use crate::op::WeightId;

pub(super) const INFO: OpInfo = OpInfo::new("short_conv", 24, OpKind::Dynamic).for_cpus();

/// A multiplication and an addition for each row that a value depends on. Beside the weights, the state is read once per sequence that
/// has one, and written once for each place where it is kept.
pub(super) fn work(at: &OpShape<'_>, weight: WeightId, state: usize) -> Work {
    let taps = at.graph.weights()[weight.0].cols as u64;
    let layout = at.graph.kv().filter(|layout| state < layout.states.len());
    let state_bytes = match layout {
        Some(layout) => layout.states[state].bytes() as u64,
        None => 4 * (taps - taps.min(1)) * at.features,
    };
    let moved = at
        .batch
        .spans
        .iter()
        .map(|span| (1 + span.states.keep.len() + usize::from(span.start > 0)) as u64);
    Work {
        flops: 2 * taps * at.out(),
        bytes: at.weight_bytes(weight) + state_bytes * moved.sum::<u64>(),
    }
}

#[cfg(test)]
mod tests {
    use crate::cost::Cost;
    use crate::device::Batch;
    use crate::formats::DType;
    use crate::graph::{Graph, NewNode, WeightSpec};
    use crate::kv::{KvDtype, KvHeads, KvLayout, StateLayout};
    use crate::op::Op;

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
        push(Op::ShortConv { weight, state: 0 }, &[x]);
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
