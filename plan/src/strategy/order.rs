//! In which order an array processor multiplies.
//!
//! A weight-stationary array is at its best when the streamed operand has at least as many rows
//! as columns; below that its rate falls with rows / columns, to a sixth at worst (S2-16, S2-17).
//! For `[M, K]·[K, N]` the ratio is M/K as it stands and N/K when swapped (S2-24). Only the shapes
//! matter for which order is better, not how fast an array is: one serves for all.

use std::ops::Range;

use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Share};

use super::options::OrderSwap;
use crate::array::SystolicArray;

/// Products that an array runs: nodes, features and the rows of its graphs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Products<'a> {
    /// The model's ops.
    pub(crate) graph: &'a Graph,
    /// Features of every product.
    pub(crate) features: Share,
    /// Rows of the graphs.
    pub(crate) rows: &'a [usize],
    /// Whether orders may be swapped.
    pub(crate) swap: OrderSwap,
}

/// A product is worth a border of its own if the other order takes at least this many times as
/// long.
const STRONG: f64 = 1.5;

impl Products<'_> {
    /// The order in which the products of these nodes take less time together; straight if it is
    /// all the same.
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

    /// Runs of the nodes in which no product has a strong preference for the other order, with
    /// the order of each.
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

    /// Whether there is any product among the nodes.
    pub(crate) fn any(&self, nodes: Range<usize>) -> bool {
        self.graph.nodes()[nodes].iter().any(|node| matches!(node.op, Op::MatMul { .. }))
    }

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

    /// Relative time of a node in both orders; nothing if it is no product.
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
    use lapwing_kernels::graph::{NewNode, WeightSpec};
    use lapwing_kernels::quant::DType;

    /// Products of one value of `k` features, with those outputs.
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
        let products = Products { graph: &graph, features: Share::WHOLE, rows: &[rows], swap };
        products.runs(1..1 + outputs.len()).into_iter().map(|(_, order)| order).collect()
    }

    #[test]
    fn wide_products_of_few_rows_are_swapped_and_narrow_ones_are_not() {
        use OperandOrder::{Straight, Swapped};
        // Gate and up of 8 billion parameters at 256 rows: 256/4096 against 14336/4096.
        assert_eq!(runs(4096, &[14_336, 14_336], 256, OrderSwap::On), [Swapped]);
        // Down: 256/14336 against 4096/14336.
        assert_eq!(runs(14_336, &[4096], 256, OrderSwap::On), [Swapped]);
        // Keys and values narrower than there are rows.
        assert_eq!(runs(576, &[192, 192], 512, OrderSwap::On), [Straight]);
        assert_eq!(runs(4096, &[14_336], 256, OrderSwap::Off), [Straight]);
        assert_eq!(runs(64, &[64], 64, OrderSwap::On), [Straight]);
    }

    #[test]
    fn only_strong_preferences_part_a_run() {
        use OperandOrder::{Straight, Swapped};
        assert_eq!(runs(1024, &[1024, 64, 1024], 256, OrderSwap::On), [Swapped, Straight, Swapped]);
        // 512/576 against 1 is not worth a border.
        assert_eq!(runs(576, &[576, 192, 192], 512, OrderSwap::On), [Straight]);
    }
}
