//! Blocks: the runs of ops that strategies place and cut.

use std::ops::Range;

use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;

/// How a block may be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Matrix products of one value, and the element-wise ops on their results: tokens and
    /// features can be divided.
    Product,
    /// Other ops whose rows do not depend on each other: tokens can be divided.
    Rowwise,
    /// Ops that depend on a row's position or select rows: embedding, rotary embedding,
    /// attention, selection (the dynamic ops of S0-2). They cannot be divided.
    Dynamic,
}

impl BlockKind {
    /// Kind of the block that an op begins.
    pub fn of(op: &Op) -> BlockKind {
        match op {
            Op::MatMul { .. } => BlockKind::Product,
            Op::Embed { .. } | Op::Rope { .. } | Op::Attention(_) | Op::SelectRows => {
                BlockKind::Dynamic
            }
            Op::RmsNorm { .. } | Op::Gated(_) | Op::Add | Op::SoftCap { .. } => BlockKind::Rowwise,
        }
    }
}

/// A run of nodes of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Nodes of the graph.
    pub nodes: Range<usize>,
    /// How it may be divided.
    pub kind: BlockKind,
}

/// Cuts a graph into blocks, in order; together they cover every node once.
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

/// Whether the node belongs to the block that ends before it.
fn joins(graph: &Graph, block: &Block, at: usize, kind: BlockKind) -> bool {
    let node = &graph.nodes()[at];
    match (block.kind, kind) {
        (BlockKind::Product, BlockKind::Product) => {
            graph.nodes()[block.nodes.start].inputs == node.inputs
        }
        (BlockKind::Product, BlockKind::Rowwise) => {
            graph.can_cut_features(at..at + 1)
                && node.inputs.iter().any(|v| v.0 >= block.nodes.start)
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_kernels::graph::{NewNode, ValueId, WeightSpec};
    use lapwing_kernels::op::Activation;
    use lapwing_kernels::quant::DType;

    #[test]
    fn products_take_the_element_wise_ops_that_follow_them_and_nothing_else() {
        let mut g = Graph::default();
        let spec = WeightSpec { name: "w".into(), rows: 4, cols: 4, dtype: DType::F32 };
        let weight = g.add_weight(spec);
        let mut push = |op, inputs: &[ValueId]| {
            g.push(NewNode { op, inputs, width: 4, layer: None, role: "test" })
        };
        let matmul = || Op::MatMul { weight, bias: None };
        let x = push(Op::Embed { table: weight, scale: 1.0 }, &[]);
        let n = push(Op::RmsNorm { weight, eps: 1e-5 }, &[x]);
        let a = push(matmul(), &[n]);
        let b = push(matmul(), &[n]);
        let c = push(Op::Gated(Activation::Silu), &[a, b]);
        let d = push(matmul(), &[c]);
        let e = push(Op::Add, &[d, x]);
        let f = push(Op::RmsNorm { weight, eps: 1e-5 }, &[e]);
        push(Op::SelectRows, &[f]);
        let found: Vec<_> = blocks(&g).into_iter().map(|b| (b.nodes, b.kind)).collect();
        let want = [
            (0..1, BlockKind::Dynamic),
            (1..2, BlockKind::Rowwise),
            (2..5, BlockKind::Product),
            (5..7, BlockKind::Product),
            (7..8, BlockKind::Rowwise),
            (8..9, BlockKind::Dynamic),
        ];
        assert_eq!(found, want);
        for (nodes, kind) in found {
            assert!(kind != BlockKind::Product || g.can_cut_features(nodes.clone()));
            assert!(kind == BlockKind::Dynamic || g.can_cut_rows(nodes));
        }
    }
}
