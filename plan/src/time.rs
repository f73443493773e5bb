//! Time models of devices. The same model drives a device in virtual time, throttles a live device
//! to its stated rate, and predicts.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{Batch, GraphKey, ModelId};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::part::Part;

use crate::device::DeviceId;

/// A part of a stage, as one submission to a device.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// First node.
    pub first: usize,
    /// One past the last node.
    pub end: usize,
    /// Rows and output channels of the part.
    pub part: &'a Part,
    /// All rows of the chunk.
    pub batch: &'a Batch,
    /// Its inputs come from another device, so the two processors must synchronise.
    pub crossed: bool,
    /// What passes between devices before its stage.
    pub border: Border,
    /// It was submitted while the device was busy, which hides most of the submission time.
    pub queued: bool,
}

impl<'a> Job<'a> {
    /// Nodes on an idle device, with nothing from another device before them.
    pub fn alone(nodes: Range<usize>, part: &'a Part, batch: &'a Batch) -> Job<'a> {
        let Range { start: first, end } = nodes;
        Job { first, end, part, batch, crossed: false, border: Border::NONE, queued: false }
    }
}

/// What passes between devices before a stage starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Border {
    /// Values that a part of the stage reads and its device lacks, over all parts. Each is a buffer of its own: queries, keys and
    /// values are three.
    pub buffers: usize,
    /// The job's device computed a part of the stage before, so it waited for the other parts beside its own.
    pub shared: bool,
}

impl Border {
    /// Nothing passes.
    pub const NONE: Border = Border { buffers: 0, shared: false };

    /// As nodes find it that run alone on a device: if it has none of the values that they read, all of these arrive.
    pub fn entering(graph: &Graph, nodes: Range<usize>, crossed: bool) -> Border {
        let buffers = if crossed { graph.live_in(nodes).len() } else { 0 };
        Border { buffers, shared: false }
    }
}

/// Predicts how long a device takes.
pub trait TimeModel: Send + Sync {
    /// Time before the first node: submission, and synchronisation if the inputs come from another
    /// device.
    fn overhead(&self, job: &Job<'_>) -> Duration;

    /// Time of one node of the job.
    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration;

    /// Time to prepare a static graph.
    fn prepare_time(&self, _key: &GraphKey) -> Duration {
        Duration::ZERO
    }

    /// Time to copy values into another layout or into padding; `bytes` counts reads and writes.
    fn convert_time(&self, _bytes: u64) -> Duration {
        Duration::ZERO
    }

    /// Time to copy values over the device's link to the host; `bytes` counts reads and writes. `None` where the model knows no link.
    fn link_time(&self, _bytes: u64) -> Option<Duration> {
        None
    }

    /// Time to copy values between the memories of host and device; `bytes` counts reads and writes.
    fn transfer_time(&self, bytes: u64) -> Duration {
        self.link_time(bytes).unwrap_or_else(|| self.convert_time(bytes))
    }

    /// Load of a node on the memory that all devices share.
    fn load(&self, _job: &Job<'_>, _node: usize) -> NodeLoad {
        NodeLoad::NONE
    }

    /// Time to copy a job's inputs into static graphs, and its outputs out of them.
    fn conversion(&self, _job: &Job<'_>) -> Duration {
        Duration::ZERO
    }

    /// Time of the whole job.
    fn run_time(&self, job: &Job<'_>) -> Duration {
        let nodes: Duration = (job.first..job.end).map(|node| self.node_time(job, node)).sum();
        self.overhead(job) + self.conversion(job) + nodes
    }
}

/// Memory traffic of a node, and whether the node starts a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeLoad {
    /// Bytes read and written.
    pub bytes: f64,
    /// Its time is bound by memory, so it slows down when devices compete for bandwidth.
    pub memory_bound: bool,
    /// It runs in the same kernel as the node before it.
    pub joins: bool,
}

impl NodeLoad {
    /// No memory traffic.
    pub const NONE: NodeLoad = NodeLoad { bytes: 0.0, memory_bound: false, joins: false };
}

/// A fixed time per stage and per row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedRate {
    /// Time to start a stage.
    pub per_stage: Duration,
    /// Time per row.
    pub per_row: Duration,
}

impl TimeModel for FixedRate {
    fn overhead(&self, _job: &Job<'_>) -> Duration {
        Duration::ZERO
    }

    /// The first node takes all of the time.
    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        if node != job.first {
            return Duration::ZERO;
        }
        let rows = job.part.row_count(job.batch);
        self.per_stage + self.per_row * u32::try_from(rows).unwrap_or(u32::MAX)
    }
}

/// The time models of a device that holds several models, by the model's number. Jobs of a model without one
/// are predicted by the last.
pub struct TimePerModel {
    first: Arc<dyn TimeModel>,
    others: Vec<Arc<dyn TimeModel>>,
}

impl TimePerModel {
    /// A time model per model; `first` is that of model 0.
    pub fn new(
        first: Arc<dyn TimeModel>,
        others: impl IntoIterator<Item = Arc<dyn TimeModel>>,
    ) -> TimePerModel {
        TimePerModel { first, others: others.into_iter().collect() }
    }

    fn of(&self, model: ModelId) -> &dyn TimeModel {
        let other = model.0.min(self.others.len()).checked_sub(1);
        other.and_then(|at| self.others.get(at)).map_or(&*self.first, |other| &**other)
    }
}

impl TimeModel for TimePerModel {
    fn overhead(&self, job: &Job<'_>) -> Duration {
        self.of(job.batch.model).overhead(job)
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        self.of(job.batch.model).node_time(job, node)
    }

    fn prepare_time(&self, key: &GraphKey) -> Duration {
        self.of(key.model).prepare_time(key)
    }

    fn convert_time(&self, bytes: u64) -> Duration {
        self.first.convert_time(bytes)
    }

    fn link_time(&self, bytes: u64) -> Option<Duration> {
        self.first.link_time(bytes)
    }

    fn transfer_time(&self, bytes: u64) -> Duration {
        self.first.transfer_time(bytes)
    }

    fn load(&self, job: &Job<'_>, node: usize) -> NodeLoad {
        self.of(job.batch.model).load(job, node)
    }

    fn conversion(&self, job: &Job<'_>) -> Duration {
        self.of(job.batch.model).conversion(job)
    }

    fn run_time(&self, job: &Job<'_>) -> Duration {
        self.of(job.batch.model).run_time(job)
    }
}

/// The two devices of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// Device that computed the values.
    pub from: DeviceId,
    /// Device that reads them.
    pub to: DeviceId,
}
