//! Inputs of measured ops.

use std::ops::Range;

use lapwing_kernels::device::{Batch, Tensor, TensorSet};
use lapwing_kernels::graph::{Graph, ValueId};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::Part;

/// A batch of one sequence of `m` rows, in pages of `page_rows` rows. `selected`: select all rows instead of the last one.
pub(super) fn batch(m: usize, context: usize, selected: bool, page_rows: usize) -> Batch {
    let mut batch = Batch { passes_on: true, ..Batch::default() };
    let pages: Vec<_> = (0..(context + m).div_ceil(page_rows)).map(|page| page as u32).collect();
    let selected = if selected { 0..m } else { m - 1..m };
    // The id does not affect the time; 0 is in every vocabulary.
    batch.push(&vec![0; m], context, pages, selected);
    batch
}

/// Inputs of the nodes: small numbers of both signs, without subnormals, and routes that spread rows over the experts.
pub(super) fn values(graph: &Graph, nodes: Range<usize>, batch: &Batch) -> TensorSet {
    let mut inputs = TensorSet::default();
    for id in graph.live_in(nodes) {
        let value = graph.value(id);
        let rows = Part::WHOLE.rows_of(value, batch).len();
        let data = route(graph, id, rows).unwrap_or_else(|| {
            (0..rows * value.width).map(|i| (i * 37 % 101) as f32 / 64.0 - 0.75).collect()
        });
        inputs.put(id, Tensor::new(value.width, data));
    }
    inputs
}

/// If a value is a route: one in which each row has neighbouring experts from a place of its own on, all with the same weight.
fn route(graph: &Graph, id: ValueId, rows: usize) -> Option<Vec<f32>> {
    let node = &graph.nodes()[id.0];
    let Op::Route(op) = &node.op else { return None };
    let (count, used) = (graph.value(node.inputs[0]).width, op.used);
    let of_row = |row: usize| {
        let first = row * 104_729 % count;
        let numbers = (first..first + used).map(move |expert| (expert % count) as f32);
        numbers.chain((0..used).map(move |_| 1.0 / used as f32))
    };
    Some((0..rows).flat_map(of_row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_kernels::formats::DType;
    use lapwing_kernels::graph::{NewNode, WeightSpec};
    use lapwing_kernels::op::{RouteOp, RouterScore};

    #[test]
    fn measured_rows_have_different_experts() {
        let mut graph = Graph::default();
        let spec = WeightSpec { name: "w".into(), rows: 8, cols: 8, dtype: DType::F32 };
        let table = graph.add_weight(spec);
        let mut push = |op, inputs: &[ValueId], width| {
            graph.push(NewNode { op, inputs, width, layer: None, role: "test" })
        };
        let logits = push(Op::Embed { table, scale: 1.0 }, &[], 8);
        let op = RouteOp {
            used: 3,
            score: RouterScore::Softmax,
            bias: None,
            groups: None,
            is_normalised: true,
            scale: 1.0,
        };
        let route = push(Op::Route(op), &[logits], 6);
        push(Op::Mix { used: 3, is_weighted: true }, &[logits, route], 8);
        let inputs = values(&graph, 2..3, &batch(40, 0, true, 32));
        let routes = inputs.get(route).and_then(Tensor::host).expect("a route");
        let mut rows_of = [0; 8];
        for row in routes.chunks(6) {
            row[..3].iter().for_each(|expert| rows_of[*expert as usize] += 1);
            assert!(row[0] != row[1] && row[1] != row[2] && row[2] != row[0], "{row:?}");
        }
        assert!(rows_of.iter().all(|rows| *rows > 0), "{rows_of:?}");
    }
}
