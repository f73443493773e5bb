//! Inputs of measured ops.

use std::ops::Range;

use lapwing_kernels::device::{Batch, Tensor, TensorSet};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::part::Part;

/// A batch of one sequence of `m` rows, in pages of `page_rows` rows. `selected`: select all rows instead of the last one.
pub(super) fn batch(m: usize, context: usize, selected: bool, page_rows: usize) -> Batch {
    let mut batch = Batch::default();
    let pages: Vec<_> = (0..(context + m).div_ceil(page_rows)).map(|page| page as u32).collect();
    let selected = if selected { 0..m } else { m - 1..m };
    // The id does not affect the time; 0 is in every vocabulary.
    batch.push(&vec![0; m], context, pages, selected);
    batch
}

/// Inputs of the nodes: small numbers of both signs, without subnormals.
pub(super) fn values(graph: &Graph, nodes: Range<usize>, batch: &Batch) -> TensorSet {
    let mut inputs = TensorSet::default();
    for id in graph.live_in(nodes) {
        let value = graph.value(id);
        let rows = Part::WHOLE.rows_of(value, batch).len();
        let data = (0..rows * value.width).map(|i| (i * 37 % 101) as f32 / 64.0 - 0.75);
        inputs.put(id, Tensor::new(value.width, data.collect::<Vec<f32>>()));
    }
    inputs
}
