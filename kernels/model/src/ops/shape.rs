//! The size of an op in a batch.

use crate::device::Batch;
use crate::graph::{Graph, WeightId};

/// A part of a node over a batch.
pub(crate) struct OpShape<'a> {
    pub(crate) graph: &'a Graph,
    /// The node.
    pub(crate) node: usize,
    pub(crate) batch: &'a Batch,
    /// Rows of its output.
    pub(crate) rows: u64,
    /// Values of a row of its output.
    pub(crate) features: u64,
}

/// What an op has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Floating-point operations.
    pub(crate) flops: u64,
    /// Bytes of weights, tables, keys and values.
    pub(crate) bytes: u64,
}

impl Work {
    /// Operations on values alone.
    pub(super) fn of_values(flops: u64) -> Work {
        Work { flops, bytes: 0 }
    }
}

impl OpShape<'_> {
    /// Values of its output.
    pub(super) fn out(&self) -> u64 {
        self.rows * self.features
    }

    /// Bytes of a row of a matrix or a table.
    pub(super) fn row_bytes(&self, weight: WeightId) -> u64 {
        self.graph.row_bytes(weight)
    }

    /// Bytes of a vector or a matrix.
    pub(super) fn weight_bytes(&self, weight: WeightId) -> u64 {
        self.graph.weight_bytes(weight)
    }

    /// Bytes of a state that are moved: it is read once per sequence that has one, and written once for each place where it is kept. Without
    /// a layout it has `values` values.
    pub(super) fn state_bytes(&self, state: usize, values: u64) -> u64 {
        let layout = self.graph.kv().filter(|layout| state < layout.states.len());
        let bytes = layout.map_or(4 * values, |layout| layout.states[state].bytes() as u64);
        let spans = self.batch.spans.iter();
        let moved = spans.map(|span| 1 + span.states.keep.len() + usize::from(span.start > 0));
        bytes * moved.sum::<usize>() as u64
    }
}
