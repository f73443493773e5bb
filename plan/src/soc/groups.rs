//! Products that run as one kernel: consecutive ones of the same value, whose weights lie beside
//! each other (q, k and v; gate and up).

use std::ops::Range;

use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::Part;

/// The kernels of a graph.
#[derive(Debug)]
pub(super) struct Groups {
    /// By node: the nodes that run as one kernel with it.
    of: Vec<Range<usize>>,
}

/// The sides of a kernel's weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sides {
    /// N: outputs of the part.
    pub(super) outputs: f64,
    /// Outputs of the whole.
    pub(super) all_outputs: f64,
    /// K: inputs.
    pub(super) inputs: f64,
    /// Bytes of the part's weights.
    pub(super) bytes: f64,
}

impl Groups {
    pub(super) fn new(graph: &Graph) -> Groups {
        let nodes = graph.nodes();
        let mut of: Vec<Range<usize>> = Vec::with_capacity(nodes.len());
        let is_product = |at: usize| matches!(nodes[at].op, Op::MatMul { .. });
        let mut start = 0;
        while start < nodes.len() {
            let joins = |at: usize| is_product(at) && nodes[at].inputs == nodes[start].inputs;
            let mut end = start + 1;
            while is_product(start) && end < nodes.len() && joins(end) {
                end += 1;
            }
            of.extend((start..end).map(|_| start..end));
            start = end;
        }
        Groups { of }
    }

    /// Nodes that run as one kernel with that one, of those between `first` and `end`.
    pub(super) fn kernel(&self, node: usize, (first, end): (usize, usize)) -> Range<usize> {
        let Range { start, end: last } = self.of[node].clone();
        start.max(first)..last.min(end)
    }

    /// The product, and those that run with it, of a part; its nodes up to `upto` only.
    pub(super) fn sides(
        &self,
        (graph, bits): (&Graph, &[f64]),
        nodes: Range<usize>,
        part: &Part,
    ) -> Sides {
        let mut sides = Sides { outputs: 0.0, all_outputs: 0.0, inputs: 0.0, bytes: 0.0 };
        for node in nodes {
            let node = &graph.nodes()[node];
            let Op::MatMul { weight, .. } = node.op else { continue };
            let width = graph.value(node.output).width;
            let outputs = part.features.of_width(width).len() as f64;
            sides.inputs = graph.weights()[weight.0].cols as f64;
            sides.outputs += outputs;
            sides.all_outputs += width as f64;
            sides.bytes += outputs * sides.inputs * bits[weight.0] / 8.0;
        }
        sides
    }
}
