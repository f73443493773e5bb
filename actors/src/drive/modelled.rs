//! Devices that compute true values and take modelled time. In virtual time the clock jumps to the
//! modelled end; live, the driver waits for it, so that the device is held to its stated rate.

use std::time::Duration;

use lapwing_kernels::device::{GraphKey, Observer, SlotPool, Step, TensorSet};
use lapwing_kernels::graph::{Graph, ValueId};
use lapwing_kernels::merge::Merge;

use crate::message::{Chunk, Delivery, PartDone};
use lapwing_plan::StageWork;
use lapwing_plan::shape::transfer_bytes;
use lapwing_plan::time::{Job, NodeLoad, TimeModel};

/// What a device did, and how long that takes by the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Segment {
    pub(super) did: Did,
    pub(super) time: Duration,
    pub(super) load: NodeLoad,
}

impl Segment {
    /// Something that asks nothing of memory.
    pub(super) fn plain(did: Did, time: Duration) -> Segment {
        Segment { did, time, load: NodeLoad::NONE }
    }
}

/// What a device did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Did {
    /// Was submitted to, and synchronised with.
    Overhead,
    /// Prepared a graph, or converted.
    Step(Step),
    /// Copied values between the memories of host and device.
    Transfer {
        /// Bytes read and written.
        bytes: u64,
    },
    /// Computed a node.
    Node(usize),
    /// Was held up by a frame that someone else drew.
    #[cfg_attr(not(feature = "simulate"), expect(dead_code, reason = "only simulated frames"))]
    Frame,
}

/// What the model says of a delivery in which the device also did those steps. `queued` tells
/// whether it was submitted while the device was busy.
pub(super) fn segments_of(
    time: &dyn TimeModel,
    (delivery, queued): (&Delivery, bool),
    graph: &Graph,
    steps: Vec<Step>,
) -> Vec<Segment> {
    let chunk = delivery.chunk();
    if let StageWork::Transfer { values, .. } = &chunk.stage().work {
        let bytes = transfer_bytes(graph, values, chunk.batch());
        return vec![Segment::plain(Did::Transfer { bytes }, time.transfer_time(bytes))];
    }
    let nodes = chunk.stage().nodes.clone();
    let job = Job {
        first: nodes.start,
        end: nodes.end,
        part: &delivery.part().part,
        batch: chunk.batch(),
        crossed: delivery.crossed(),
        queued,
    };
    segments(time, &job, steps)
}

/// What the model says of a job in which the device also did those steps.
pub(super) fn segments(time: &dyn TimeModel, job: &Job<'_>, steps: Vec<Step>) -> Vec<Segment> {
    let mut segments = vec![Segment::plain(Did::Overhead, time.overhead(job))];
    for step in steps {
        let time = match step {
            Step::Prepared { first, end, rows, .. } => time.prepare_time(&GraphKey {
                model: job.batch.model,
                nodes: first..end,
                features: job.part.features,
                rows,
                order: job.part.order,
            }),
            Step::Converted { bytes } => time.convert_time(bytes),
        };
        segments.push(Segment::plain(Did::Step(step), time));
    }
    segments.extend((job.first..job.end).map(|node| Segment {
        did: Did::Node(node),
        time: time.node_time(job, node),
        load: time.load(job, node),
    }));
    segments
}

/// Puts the parts of a chunk's stage together; with it, the bytes read and written for that.
///
/// # Errors
/// A value of which the parts do not fit.
pub(super) fn merge_parts(
    chunk: &Chunk,
    parts: Vec<PartDone>,
    graph: &Graph,
    slots: &SlotPool,
) -> Result<(TensorSet, u64), ValueId> {
    let outputs = parts.into_iter().filter_map(|part| part.message.ok());
    let parts = chunk.stage().parts.iter().map(|part| &part.part).zip(outputs).collect();
    Merge { graph, batch: chunk.batch(), writes: &chunk.flow().writes, slots }.run(parts)
}

/// Time of all segments.
pub(super) fn total(segments: &[Segment]) -> Duration {
    segments.iter().map(|segment| segment.time).sum()
}

/// Remembers what a device did beside computing nodes.
#[derive(Default)]
pub(super) struct StepLog(pub(super) Vec<Step>);

impl Observer for StepLog {
    fn node_done(&mut self, _node: usize) {}

    fn step_done(&mut self, step: Step) {
        self.0.push(step);
    }
}
