//! Terms of the solver's objective: bytes of a merge, submission, and the cost of foreign inputs.

use std::ops::Range;
use std::time::Duration;

use lapwing_kernels::device::Batch;
use lapwing_kernels::graph::Graph;
use lapwing_kernels::part::Part;

use crate::cost::CostModel;
use crate::device::DeviceId;
use crate::time::Job;

/// Bytes read and written to merge the parts of a divided stage.
pub fn merge_bytes(graph: &Graph, nodes: Range<usize>, batch: &Batch) -> u64 {
    let written = graph.writes(nodes).into_iter().map(|value| {
        let value = graph.value(value);
        Part::WHOLE.rows_of(value, batch).len() * value.width * size_of::<f32>()
    });
    2 * written.sum::<usize>() as u64
}

/// Submission time: that of a job without nodes.
pub(crate) fn submit_time(
    cost: &dyn CostModel,
    device: DeviceId,
    batch: &Batch,
    crossed: bool,
) -> Duration {
    let part = &Part::WHOLE;
    cost.job_time(device, &Job { first: 0, end: 0, part, batch, crossed, queued: false })
}

/// Time that a device adds to a job because its inputs come from another device.
pub(crate) fn entry_time(cost: &dyn CostModel, device: DeviceId, batch: &Batch) -> Duration {
    let submit = |crossed| submit_time(cost, device, batch, crossed);
    submit(true).saturating_sub(submit(false))
}
