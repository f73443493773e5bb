//! The operand order of matmuls on a systolic array.
//!
//! A weight-stationary array reaches its full rate when the streamed operand has at least as many
//! rows as columns. Below that, its rate falls with rows / columns, to a sixth at worst (HeteroLLM,
//! arXiv 2501.14794, characteristics NPU-2 and NPU-3). For `[M, K]·[K, N]` the ratio is M/K in
//! straight order and N/K in swapped order. Which order is faster depends on the shapes only, not on
//! the rate of the array, so one default array serves for all.

use std::ops::Range;

use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Share};

use super::options::OrderSwap;
use crate::array::SystolicArray;

/// Matmuls on an array: the graph, the output channels and the rows of its static graphs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matmuls<'a> {
    /// The model's ops.
    pub(crate) graph: &'a Graph,
    /// Output channels of every matmul.
    pub(crate) features: Share,
    /// Rows of each static graph.
    pub(crate) rows: &'a [usize],
    /// Whether operands may be swapped.
    pub(crate) swap: OrderSwap,
}

/// A matmul has a strong preference if the other order takes at least this factor longer. Only a
/// strong preference is worth a stage border.
const STRONG: f64 = 1.5;

impl Matmuls<'_> {
    /// The order in which the matmuls of these nodes take less total time; straight if both are
    /// equal.
    pub(crate) fn order(&self, nodes: Range<usize>) -> OperandOrder {
        let (mut straight, mut swapped) = (0.0, 0.0);
        for node in nodes {
            let (a, b) = self.times(node);
            straight += a;
            swapped += b;
        }
        let swap = self.swap == OrderSwap::On && swapped < straight;
        if swap { OperandOrder::Swapped } else { OperandOrder::Straight }
    }

    /// Splits the nodes into runs, each with an order that no matmul of the run has a strong
    /// preference against.
    pub(crate) fn runs(&self, nodes: Range<usize>) -> Vec<(Range<usize>, OperandOrder)> {
        let mut runs = Vec::new();
        let (mut start, mut wanted) = (nodes.start, None);
        for node in nodes.clone() {
            let Some(order) = self.strong(node) else { continue };
            if wanted.is_some_and(|w| w != order) {
                runs.push((start..node, self.order(start..node)));
                start = node;
            }
            wanted = Some(order);
        }
        runs.push((start..nodes.end, self.order(start..nodes.end)));
        runs
    }

    /// Whether the nodes contain a matmul.
    pub(crate) fn any(&self, nodes: Range<usize>) -> bool {
        self.graph.nodes()[nodes].iter().any(|node| matches!(node.op, Op::MatMul { .. }))
    }

    /// The order that a matmul strongly prefers, if any.
    fn strong(&self, node: usize) -> Option<OperandOrder> {
        let (straight, swapped) = self.times(node);
        match self.swap {
            OrderSwap::Off => None,
            OrderSwap::On if straight >= STRONG * swapped && straight > 0.0 => {
                Some(OperandOrder::Swapped)
            }
            OrderSwap::On if swapped >= STRONG * straight && swapped > 0.0 => {
                Some(OperandOrder::Straight)
            }
            OrderSwap::On => None,
        }
    }

    /// Cycles of a node in straight and in swapped order; 0 for other ops than matmuls.
    fn times(&self, node: usize) -> (f64, f64) {
        let node = &self.graph.nodes()[node];
        let Op::MatMul { weight, .. } = node.op else { return (0.0, 0.0) };
        let inner = self.graph.weights()[weight.0].cols;
        let out = self.features.of_width(self.graph.value(node.output).width).len();
        let array = SystolicArray::default();
        let cycles = |order| {
            let of = |rows: &usize| array.streaming([*rows, inner, out], order).cycles as f64;
            self.rows.iter().map(of).sum()
        };
        (cycles(OperandOrder::Straight), cycles(OperandOrder::Swapped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_kernels::formats::DType;
    use lapwing_kernels::graph::{NewNode, WeightSpec};

    /// Matmuls of one value of width `k`, with these output widths.
    fn graph(k: usize, outputs: &[usize]) -> Graph {
        let mut g = Graph::default();
        let spec = |rows| WeightSpec { name: "w".into(), rows, cols: k, dtype: DType::F32 };
        let table = g.add_weight(spec(10));
        let node = NewNode {
            op: Op::Embed { table, scale: 1.0 },
            inputs: &[],
            width: k,
            layer: None,
            role: "embed",
        };
        let x = g.push(node);
        for &width in outputs {
            let weight = g.add_weight(spec(width));
            let op = Op::MatMul { weight, bias: None };
            g.push(NewNode { op, inputs: &[x], width, layer: None, role: "test" });
        }
        g
    }

    fn runs(k: usize, outputs: &[usize], rows: usize, swap: OrderSwap) -> Vec<OperandOrder> {
        let graph = graph(k, outputs);
        let matmuls = Matmuls { graph: &graph, features: Share::WHOLE, rows: &[rows], swap };
        matmuls.runs(1..1 + outputs.len()).into_iter().map(|(_, order)| order).collect()
    }

    #[test]
    fn wide_matmuls_of_few_rows_are_swapped_and_narrow_ones_are_not() {
        use OperandOrder::{Straight, Swapped};
        // Gate and up of Llama-3-8B at 256 rows: 256/4096 against 14336/4096.
        assert_eq!(runs(4096, &[14_336, 14_336], 256, OrderSwap::On), [Swapped]);
        // Down: 256/14336 against 4096/14336.
        assert_eq!(runs(14_336, &[4096], 256, OrderSwap::On), [Swapped]);
        // Keys and values are narrower than the number of rows.
        assert_eq!(runs(576, &[192, 192], 512, OrderSwap::On), [Straight]);
        assert_eq!(runs(4096, &[14_336], 256, OrderSwap::Off), [Straight]);
        assert_eq!(runs(64, &[64], 64, OrderSwap::On), [Straight]);
    }

    #[test]
    fn only_strong_preferences_split_a_run() {
        use OperandOrder::{Straight, Swapped};
        assert_eq!(runs(1024, &[1024, 64, 1024], 256, OrderSwap::On), [Swapped, Straight, Swapped]);
        // 512/576 against 1 is too small a gain to split the run.
        assert_eq!(runs(576, &[576, 192, 192], 512, OrderSwap::On), [Straight]);
    }
}
