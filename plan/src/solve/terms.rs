//! Terms of the solver's objective: bytes of a merge, submission, and the cost of foreign inputs.

use std::ops::Range;
use std::time::Duration;

use lapwing_kernels::device::Batch;
use lapwing_kernels::graph::Graph;
use lapwing_kernels::part::Part;

use crate::cost::CostModel;
use crate::device::DeviceId;
use crate::stage::{Stage, StagePart};
use crate::time::{Border, Job};

/// Bytes read and written to merge the parts of a divided stage.
pub(crate) fn merge_bytes(graph: &Graph, nodes: Range<usize>, batch: &Batch) -> u64 {
    let written = graph.writes(nodes).into_iter().map(|value| {
        let value = graph.value(value);
        Part::WHOLE.rows_of(value, batch).len() * value.width * size_of::<f32>()
    });
    2 * written.sum::<usize>() as u64
}

/// Bytes read and written to merge the parts of a stage: where they are cut by experts, the slots of all but the largest part are
/// copied into it.
pub fn stage_merge_bytes(graph: &Graph, stage: &Stage, batch: &Batch) -> u64 {
    let all = merge_bytes(graph, stage.nodes.clone(), batch);
    let share = |part: &StagePart| graph.expert_share(stage.nodes.start, &part.part);
    match stage.parts.iter().any(|part| part.part.experts.is_some()) {
        true => (all as f64 * (1.0 - stage.parts.iter().map(share).fold(0.0, f64::max))) as u64,
        false => all,
    }
}

/// How a job begins.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its inputs come from another device.
    pub(crate) crossed: bool,
    /// What passes between devices before it.
    pub(crate) border: Border,
    /// Its rows, output channels and static graphs.
    pub(crate) part: Part,
}

impl Default for Entry {
    fn default() -> Entry {
        Entry { crossed: false, border: Border::NONE, part: Part::WHOLE }
    }
}

/// Submission time: that of a job without nodes.
pub(crate) fn submit_time(
    cost: &dyn CostModel,
    device: DeviceId,
    batch: &Batch,
    entry: Entry,
) -> Duration {
    let Entry { crossed, border, part } = &entry;
    let (crossed, border) = (*crossed, *border);
    cost.job_time(device, &Job { first: 0, end: 0, part, batch, crossed, border, queued: false })
}

/// Time that a device adds to a job because its inputs come from another device.
pub(crate) fn entry_time(
    cost: &dyn CostModel,
    device: DeviceId,
    batch: &Batch,
    border: Border,
) -> Duration {
    let submit = |crossed, border| {
        submit_time(cost, device, batch, Entry { crossed, border, part: Part::WHOLE })
    };
    submit(true, border).saturating_sub(submit(false, Border::NONE))
}
