//! What passes between stages of a graph.

use super::*;
use crate::op::Activation;

fn node<'a>(op: Op, inputs: &'a [ValueId]) -> NewNode<'a> {
    NewNode { op, inputs, width: 4, layer: None, role: "test" }
}

fn diamond() -> Graph {
    let mut g = Graph::default();
    let table = g.add_weight(WeightSpec { name: "t".into(), rows: 2, cols: 4, dtype: DType::F32 });
    let a = g.push(node(Op::Embed { table, scale: 1.0 }, &[]));
    let b = g.push(node(Op::SoftCap { cap: 1.0 }, &[a]));
    let c = g.push(node(Op::Gated(Activation::Silu), &[a, b]));
    let d = g.push(node(Op::SelectRows, &[c]));
    g.push(node(Op::SoftCap { cap: 2.0 }, &[d]));
    g
}

#[test]
fn a_value_that_skips_a_stage_is_passed_on() {
    let g = diamond();
    assert_eq!(g.live_in(0..2), vec![]);
    assert_eq!(g.live_out(0..1), vec![ValueId(0)]);
    assert_eq!(g.live_out(1..2), vec![ValueId(0), ValueId(1)]);
    assert_eq!(g.live_in(2..5), vec![ValueId(0), ValueId(1)]);
    assert_eq!(g.live_out(2..5), vec![ValueId(4)]);
}

#[test]
fn the_inputs_of_any_range_are_what_its_nodes_read_from_before() {
    let g = diamond();
    let nodes = g.nodes().len();
    for (start, end) in (0..=nodes).flat_map(|start| (start..=nodes).map(move |end| (start, end))) {
        let mut read: Vec<ValueId> = Vec::new();
        let inputs = g.nodes()[start..end].iter().flat_map(|node| &node.inputs);
        for input in inputs.filter(|input| input.0 < start) {
            if !read.contains(input) {
                read.push(*input);
            }
        }
        assert_eq!(g.live_in(start..end), read, "{start}..{end}");
    }
}

#[test]
fn values_end_at_their_last_reader_and_the_output_never_ends() {
    let dead = diamond().last_uses();
    assert_eq!(dead[1], vec![]);
    assert_eq!(dead[2], vec![ValueId(0), ValueId(1)]);
    assert_eq!(dead[4], vec![ValueId(3)]);
    assert!(dead.iter().flatten().all(|v| *v != ValueId(4)));
}

#[test]
fn all_values_after_the_select_node_have_selected_rows() {
    let g = diamond();
    assert_eq!(g.value(ValueId(2)).rows, RowSet::All);
    assert_eq!(g.value(ValueId(3)).rows, RowSet::Selected);
    assert_eq!(g.value(ValueId(4)).rows, RowSet::Selected);
}

#[test]
#[should_panic(expected = "input before its writer")]
fn a_node_cannot_read_a_value_before_it_is_written() {
    let mut g = Graph::default();
    g.push(node(Op::Add, &[ValueId(0), ValueId(1)]));
}
