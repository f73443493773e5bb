//! A model of which only the time of a pass matters.

use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::op::Op;

/// Whether a node of a graph of `layers` layers is a layer.
pub(super) fn is_layer(node: usize, layers: usize) -> bool {
    (1..=layers).contains(&node)
}

/// A model of `layers` layers; only its shape matters.
pub(super) fn graph(layers: usize) -> Graph {
    let mut graph = Graph::default();
    let mut weight = |name: &str, rows| {
        graph.add_weight(WeightSpec { name: name.to_owned(), rows, cols: 1, dtype: DType::F32 })
    };
    let (table, head) = (weight("table", 1), weight("head", 1));
    let mut push = |op, inputs: &[_], (width, layer)| {
        graph.push(NewNode { op, inputs, width, layer, role: "pass" })
    };
    let mut x = push(Op::Embed { table, scale: 1.0 }, &[], (1, None));
    for layer in 0..layers {
        x = push(Op::Add, &[x, x], (1, Some(layer)));
    }
    let selected = push(Op::SelectRows, &[x], (1, None));
    push(Op::MatMul { weight: head, bias: None }, &[selected], (1, None));
    graph
}
