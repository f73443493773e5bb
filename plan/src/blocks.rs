//! Blocks: the runs of consecutive ops that strategies place and divide.

use std::ops::Range;

use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::ops::OpKind;

/// Along which dimensions a block can be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Matmuls that read the same value, and the element-wise ops on their outputs: rows and
    /// output channels can be divided.
    Matmul,
    /// Other ops whose rows are independent of each other: rows can be divided.
    Rowwise,
    /// Embedding, tables of positions, rotary embedding, attention and selection: they depend on the position of a
    /// row or select or join rows or columns, and cannot be divided (the dynamic ops of mllm-NPU, arXiv 2407.05858).
    Dynamic,
}

impl BlockKind {
    /// Kind of a block that starts with this op.
    pub fn of(op: &Op) -> BlockKind {
        match op.info().kind {
            OpKind::Product => BlockKind::Matmul,
            OpKind::Dynamic => BlockKind::Dynamic,
            OpKind::Elementwise | OpKind::Rowwise => BlockKind::Rowwise,
        }
    }
}

/// Consecutive nodes that are placed or divided together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Nodes of the graph.
    pub nodes: Range<usize>,
    /// Along which dimensions it can be divided.
    pub kind: BlockKind,
}

/// Splits a graph into blocks, in order. Together they cover every node once.
pub fn blocks(graph: &Graph) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (at, node) in graph.nodes().iter().enumerate() {
        let kind = BlockKind::of(&node.op);
        match blocks.last_mut() {
            Some(last) if joins(graph, last, at, kind) => last.nodes.end = at + 1,
            _ => blocks.push(Block { nodes: at..at + 1, kind }),
        }
    }
    blocks
}

/// Whether the node joins the block before it.
fn joins(graph: &Graph, block: &Block, at: usize, kind: BlockKind) -> bool {
    let node = &graph.nodes()[at];
    match (block.kind, kind) {
        (BlockKind::Matmul, BlockKind::Matmul) => {
            graph.nodes()[block.nodes.start].inputs == node.inputs
        }
        (BlockKind::Matmul, BlockKind::Rowwise) => {
            graph.can_cut_features(at..at + 1)
                && node.inputs.iter().any(|v| v.0 >= block.nodes.start)
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_kernels::formats::DType;
    use lapwing_kernels::graph::{NewNode, ValueId, WeightSpec};
    use lapwing_kernels::op::Activation;

    #[test]
    fn a_block_of_matmuls_includes_only_the_element_wise_ops_on_their_outputs() {
        let mut g = Graph::default();
        let spec = WeightSpec { name: "w".into(), rows: 4, cols: 4, dtype: DType::F32 };
        let weight = g.add_weight(spec);
        let mut push = |op, inputs: &[ValueId]| {
            g.push(NewNode { op, inputs, width: 4, layer: None, role: "test" })
        };
        let matmul = || Op::MatMul { weight, bias: None };
        let x = push(Op::Embed { table: weight, scale: 1.0 }, &[]);
        let norm = || Op::RmsNorm { weight: Some(weight), group: 4, eps: 1e-5 };
        let n = push(norm(), &[x]);
        let a = push(matmul(), &[n]);
        let b = push(matmul(), &[n]);
        let c = push(Op::Gated(Activation::Silu), &[a, b]);
        let d = push(matmul(), &[c]);
        let e = push(Op::Add, &[d, x]);
        let f = push(norm(), &[e]);
        push(Op::SelectRows, &[f]);
        let found: Vec<_> = blocks(&g).into_iter().map(|b| (b.nodes, b.kind)).collect();
        let want = [
            (0..1, BlockKind::Dynamic),
            (1..2, BlockKind::Rowwise),
            (2..5, BlockKind::Matmul),
            (5..7, BlockKind::Matmul),
            (7..8, BlockKind::Rowwise),
            (8..9, BlockKind::Dynamic),
        ];
        assert_eq!(found, want);
        for (nodes, kind) in found {
            assert!(kind != BlockKind::Matmul || g.can_cut_features(nodes.clone()));
            assert!(kind == BlockKind::Dynamic || g.can_cut_rows(nodes));
        }
    }
}
