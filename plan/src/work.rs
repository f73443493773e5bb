//! What a node of a job computes and moves: the terms of a law of time.

use lapwing_kernels::graph::Graph;

use crate::rate::each_graph;
use crate::time::Job;

/// What a device computes and moves for one node of a job. A [`TimeModel`](crate::time::TimeModel) of a program's
/// own divides these terms by its rates. For a part in static graphs they are the sums over its graphs, rows of
/// padding included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeWork {
    /// Rows that it computes.
    pub rows: usize,
    /// Floating-point operations; a multiply-add counts as two.
    pub flops: f64,
    /// Bytes of the matrices that a matmul or experts read; 0 for other ops.
    pub weight_bytes: f64,
    /// All other bytes that it reads and writes: activations at four bytes a value, keys and values of the
    /// cache, rows of tables.
    pub other_bytes: f64,
}

impl NodeWork {
    /// The work of a node of a job, with weights as the graph stores them.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn of(graph: &Graph, job: &Job<'_>, node: usize) -> NodeWork {
        let matrix_bytes = graph.matrix_bytes(node, job.part, job.batch) as f64;
        let sum = |of: &dyn Fn(f64, f64, usize) -> f64| {
            each_graph(graph, job, node, |cost, rows| {
                of(cost.flops as f64, cost.bytes as f64, rows)
            })
        };
        // A device reads no weights for a node without rows.
        let weights = |bytes: f64| if bytes > 0.0 { matrix_bytes } else { 0.0 };
        NodeWork {
            rows: sum(&|_, _, rows| rows as f64) as usize,
            flops: sum(&|flops, _, _| flops),
            weight_bytes: sum(&|_, bytes, _| weights(bytes)),
            other_bytes: sum(&|_, bytes, _| bytes - weights(bytes)),
        }
    }

    /// All bytes that it reads and writes.
    pub fn bytes(&self) -> f64 {
        self.weight_bytes + self.other_bytes
    }
}

#[cfg(test)]
mod tests {
    use lapwing_kernels::device::Batch;
    use lapwing_kernels::formats::DType;
    use lapwing_kernels::graph::{NewNode, WeightSpec};
    use lapwing_kernels::op::Op;
    use lapwing_kernels::part::{Part, Share};

    use super::*;

    /// An embedding of 64 values, and a matmul with 32 outputs in q4_0, which takes 36 bytes for a row of 64.
    fn graph() -> Graph {
        let mut graph = Graph::default();
        let mut weight =
            |rows, dtype| graph.add_weight(WeightSpec { name: "w".into(), rows, cols: 64, dtype });
        let (table, matrix) = (weight(8, DType::F32), weight(64, DType::Q4_0));
        let mut push = |op, inputs: &[_], width| {
            graph.push(NewNode { op, inputs, width, layer: None, role: "test" })
        };
        let x = push(Op::Embed { table, scale: 1.0 }, &[], 64);
        push(Op::MatMul { weight: matrix, bias: None }, &[x], 64);
        graph
    }

    fn work(rows: usize, part: &Part, node: usize) -> NodeWork {
        let mut batch = Batch::default();
        batch.push(&vec![0; rows], 0, Vec::new(), 0..0);
        let job = Job::alone(0..2, part, &batch);
        NodeWork::of(&graph(), &job, node)
    }

    #[test]
    fn the_work_of_a_matmul_is_that_of_its_rows_and_outputs() {
        let all = work(3, &Part::WHOLE, 1);
        assert_eq!((all.rows, all.flops), (3, 2.0 * 3.0 * 64.0 * 64.0));
        assert_eq!((all.weight_bytes, all.other_bytes), (64.0 * 36.0, 4.0 * 3.0 * (64.0 + 64.0)));
        let half = Part { features: Share { from: 0, to: 1, of: 2 }, ..Part::WHOLE };
        assert_eq!(work(3, &half, 1).weight_bytes, 32.0 * 36.0);
        assert_eq!(work(0, &Part::WHOLE, 1), NodeWork::default(), "no rows read no weights");
        assert_eq!(work(3, &Part::WHOLE, 0).weight_bytes, 0.0, "a table's rows are no matrix");
    }

    #[test]
    fn each_static_graph_reads_the_weights_and_computes_its_padding() {
        let graphs = Part { graphs: vec![32, 32], ..Part::WHOLE };
        let work = work(40, &graphs, 1);
        assert_eq!((work.rows, work.weight_bytes), (64, 2.0 * 64.0 * 36.0));
        assert_eq!(work.flops, 64.0 * 2.0 * 64.0 * 64.0);
    }
}
