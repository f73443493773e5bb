//! Devices that compute true values and take modelled time. In virtual time the clock jumps to the
//! modelled end. The live driver waits until then, which throttles the device to its stated rate.

use std::ops::Range;
use std::time::Duration;

use lapwing_kernels::device::{GraphKey, Observer, SlotPool, Step, TensorSet};
use lapwing_kernels::graph::{Graph, ValueId};
use lapwing_kernels::merge::Merge;

use crate::message::{Chunk, Delivery, PartDone};
use lapwing_plan::StageWork;
use lapwing_plan::shape::transfer_bytes;
use lapwing_plan::time::{Job, NodeLoad, TimeModel};

/// One step of a run, with its modelled time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Segment {
    pub(super) kind: SegmentKind,
    pub(super) time: Duration,
    pub(super) load: NodeLoad,
}

impl Segment {
    /// A segment without memory traffic.
    pub(super) fn plain(kind: SegmentKind, time: Duration) -> Segment {
        Segment { kind, time, load: NodeLoad::NONE }
    }
}

/// The kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentKind {
    /// Submission and synchronisation.
    Overhead,
    /// Preparation of a graph, or conversion of values.
    Step(Step),
    /// Copy of values between the memories of host and device.
    Transfer {
        /// Bytes read and written.
        bytes: u64,
    },
    /// Computation of one node.
    Node(usize),
    /// Stall for a frame that another program drew.
    #[cfg_attr(not(feature = "simulate"), expect(dead_code, reason = "only simulated frames"))]
    Frame,
}

/// The modelled segments of a delivery in which the device reported `steps`. `queued` is set if it
/// was submitted while the device was busy.
pub(super) fn segments_of(
    time: &dyn TimeModel,
    delivery: &Delivery,
    queued: bool,
    graph: &Graph,
    steps: Vec<Step>,
) -> Vec<Segment> {
    let chunk = delivery.chunk();
    if let StageWork::Transfer { values, .. } = &chunk.stage().work {
        let bytes = transfer_bytes(graph, values, chunk.batch());
        return vec![Segment::plain(SegmentKind::Transfer { bytes }, time.transfer_time(bytes))];
    }
    let nodes = chunk.stage().nodes.clone();
    let job = Job {
        first: nodes.start,
        end: nodes.end,
        part: &delivery.part().part,
        batch: chunk.batch(),
        crossed: delivery.crossed(),
        border: chunk.route.border(chunk.cursor, delivery.device()),
        queued,
    };
    segments(time, &job, steps)
}

/// The modelled segments of a job in which the device reported `steps`.
pub(super) fn segments(time: &dyn TimeModel, job: &Job<'_>, steps: Vec<Step>) -> Vec<Segment> {
    let mut segments = vec![Segment::plain(SegmentKind::Overhead, time.overhead(job))];
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
        segments.push(Segment::plain(SegmentKind::Step(step), time));
    }
    segments.extend((job.first..job.end).map(|node| Segment {
        kind: SegmentKind::Node(node),
        time: time.node_time(job, node),
        load: time.load(job, node),
    }));
    segments
}

/// Merges the parts of a chunk's stage. Returns the values and the number of bytes read and written.
///
/// # Errors
/// The value whose parts do not fit together.
pub(super) fn merge_parts(
    chunk: &Chunk,
    parts: Vec<PartDone>,
    graph: &Graph,
    slots: &SlotPool,
) -> Result<(TensorSet, u64), ValueId> {
    let outputs = parts.into_iter().filter_map(|part| part.message.ok());
    let parts = chunk.stage().parts.iter().map(|part| &part.part).zip(outputs).collect();
    let (batch, writes, read) = (chunk.batch(), &chunk.flow().writes, &chunk.payload.values);
    Merge { graph, batch, writes, read, slots }.run(parts)
}

/// Total time of the segments.
pub(super) fn total(segments: &[Segment]) -> Duration {
    segments.iter().map(|segment| segment.time).sum()
}

/// Collects the steps that a device reports apart from nodes.
#[derive(Default)]
pub(super) struct StepLog(pub(super) Vec<Step>);

impl Observer for StepLog {
    fn nodes_done(&mut self, _nodes: Range<usize>) {}

    fn step_done(&mut self, step: Step) {
        self.0.push(step);
    }
}
