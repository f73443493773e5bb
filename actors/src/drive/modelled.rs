//! Devices that compute true values and take modelled time. In virtual time the clock jumps to the
//! modelled end; live, the driver waits for it, so that the device is held to its stated rate.

use std::time::Duration;

use lapwing_kernels::device::{
    Device, DeviceError, GraphKey, Observer, SlotPool, Step, TensorSet, Work,
};
use lapwing_kernels::graph::{Graph, ValueId};
use lapwing_kernels::merge::Merge;

use crate::message::{Chunk, Delivery, PartDone};
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
    /// Computed a node.
    Node(usize),
    /// Was held up by a frame that someone else drew.
    #[cfg_attr(not(feature = "simulate"), expect(dead_code, reason = "only simulated frames"))]
    Frame,
}

/// Runs what was delivered on its device; `observer` is told.
pub(super) fn run(
    device: &mut dyn Device,
    delivery: &Delivery,
    observer: &mut dyn Observer,
) -> Result<TensorSet, DeviceError> {
    let chunk = delivery.chunk();
    let stage = chunk.stage();
    let mut outputs = TensorSet::default();
    let entered = chunk.trace.enter();
    let result = device.run(Work {
        nodes: stage.nodes.clone(),
        part: &delivery.part().part,
        prepare: stage.prepare,
        batch: &chunk.batch,
        inputs: &chunk.tensors,
        writes: &chunk.flow().writes,
        outputs: &mut outputs,
        observer,
    });
    drop(entered);
    result.map(|()| outputs)
}

/// As [`run`], with what the model says of it. `queued` tells whether it was submitted while the
/// device was busy. A run that fails takes the modelled time, too.
pub(super) fn run_modelled(
    device: &mut dyn Device,
    time: &dyn TimeModel,
    delivery: &Delivery,
    queued: bool,
) -> (Result<TensorSet, DeviceError>, Vec<Segment>) {
    let mut log = StepLog::default();
    let result = run(device, delivery, &mut log);
    let chunk = delivery.chunk();
    let nodes = chunk.stage().nodes.clone();
    let part = &delivery.part().part;
    let job = Job {
        first: nodes.start,
        end: nodes.end,
        part,
        batch: &chunk.batch,
        crossed: delivery.crossed(),
        queued,
    };
    (result, segments(time, &job, log.0))
}

/// What the model says of a job in which the device also did those steps.
pub(super) fn segments(time: &dyn TimeModel, job: &Job<'_>, steps: Vec<Step>) -> Vec<Segment> {
    let mut segments = vec![Segment::plain(Did::Overhead, time.overhead(job))];
    for step in steps {
        let time = match step {
            Step::Prepared { first, end, rows, .. } => time.prepare_time(&GraphKey {
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
    let outputs = parts.into_iter().filter_map(|part| part.outcome.ok());
    let parts = chunk.stage().parts.iter().map(|part| &part.part).zip(outputs).collect();
    Merge { graph, batch: &chunk.batch, writes: &chunk.flow().writes, slots }.run(parts)
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
