//! Matmuls that run as one kernel: consecutive matmuls of the same input (q, k and v; gate and up).

use std::ops::Range;

use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::Part;

/// The kernels of a graph.
#[derive(Debug)]
pub(super) struct Groups {
    /// For each node, the nodes of its kernel.
    of: Vec<Range<usize>>,
}

/// The shape of a kernel's weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WeightShape {
    /// N: output channels of the part.
    pub(super) outputs: f64,
    /// Output channels of the whole kernel.
    pub(super) all_outputs: f64,
    /// K: input channels.
    pub(super) inputs: f64,
    /// Bytes of the part's weights.
    pub(super) bytes: f64,
}

impl Groups {
    pub(super) fn new(graph: &Graph) -> Groups {
        let nodes = graph.nodes();
        let mut of: Vec<Range<usize>> = Vec::with_capacity(nodes.len());
        let is_matmul = |at: usize| matches!(nodes[at].op, Op::MatMul { .. });
        let mut start = 0;
        while start < nodes.len() {
            let joins = |at: usize| is_matmul(at) && nodes[at].inputs == nodes[start].inputs;
            let mut end = start + 1;
            while is_matmul(start) && end < nodes.len() && joins(end) {
                end += 1;
            }
            of.extend((start..end).map(|_| start..end));
            start = end;
        }
        Groups { of }
    }

    /// The nodes of a node's kernel, from `first` to `end` only.
    pub(super) fn kernel(&self, node: usize, first: usize, end: usize) -> Range<usize> {
        let Range { start, end: last } = self.of[node].clone();
        start.max(first)..last.min(end)
    }

    /// The shape of the weights of some nodes of a kernel, in a part. `bits`: size of a weight by
    /// weight matrix.
    pub(super) fn weight_shape(
        graph: &Graph,
        bits: &[f64],
        nodes: Range<usize>,
        part: &Part,
    ) -> WeightShape {
        let mut shape = WeightShape { outputs: 0.0, all_outputs: 0.0, inputs: 0.0, bytes: 0.0 };
        for node in nodes {
            let node = &graph.nodes()[node];
            let Op::MatMul { weight, .. } = node.op else { continue };
            let width = graph.value(node.output).width;
            let outputs = part.features.of_width(width).len() as f64;
            shape.inputs = graph.weights()[weight.0].cols as f64;
            shape.outputs += outputs;
            shape.all_outputs += width as f64;
            shape.bytes += outputs * shape.inputs * bits[weight.0] / 8.0;
        }
        shape
    }
}
