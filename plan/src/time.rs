//! How long modelled devices take. The same models drive devices in virtual time, hold live ones
//! to a stated rate, and predict.

use std::time::Duration;

use lapwing_kernels::device::{Batch, GraphKey};
use lapwing_kernels::part::Part;

use super::DeviceId;

/// A part of a stage that a device is to run.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// First node.
    pub first: usize,
    /// One past the last node.
    pub end: usize,
    /// Which of the rows and features.
    pub part: &'a Part,
    /// All rows of the chunk.
    pub batch: &'a Batch,
    /// Its inputs come from another device: the processors must be synchronised (S2-12).
    pub crossed: bool,
    /// It was submitted while the device was busy, so that submission is hidden (S2-13).
    pub queued: bool,
}

/// How long a device takes.
pub trait TimeModel: Send + Sync {
    /// Time before the first node: submission, and synchronisation where it applies.
    fn overhead(&self, job: &Job<'_>) -> Duration;

    /// Time of one node.
    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration;

    /// Time to prepare a static graph.
    fn prepare_time(&self, _key: &GraphKey) -> Duration {
        Duration::ZERO
    }

    /// Time to copy values into another layout or into padding, for the bytes read and written.
    fn convert_time(&self, _bytes: u64) -> Duration {
        Duration::ZERO
    }

    /// Time to copy values between the memories of host and device, for the bytes read and written.
    fn transfer_time(&self, bytes: u64) -> Duration {
        self.convert_time(bytes)
    }

    /// What a node asks of the memory that all devices share.
    fn load(&self, _job: &Job<'_>, _node: usize) -> NodeLoad {
        NodeLoad::NONE
    }

    /// Time to load a job's inputs into static graphs, and to read its results from them.
    fn conversion(&self, _job: &Job<'_>) -> Duration {
        Duration::ZERO
    }

    /// Time of everything.
    fn run_time(&self, job: &Job<'_>) -> Duration {
        let nodes: Duration = (job.first..job.end).map(|node| self.node_time(job, node)).sum();
        self.overhead(job) + self.conversion(job) + nodes
    }
}

/// What a node asks of memory, and whether it is a kernel of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeLoad {
    /// Bytes read and written.
    pub bytes: f64,
    /// Its time is that of its bytes, so that it slows down where bandwidth is short.
    pub memory_bound: bool,
    /// It is part of the same kernel as the node before it.
    pub joins: bool,
}

impl NodeLoad {
    /// Nothing.
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

    /// All of it is the first node's.
    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        if node != job.first {
            return Duration::ZERO;
        }
        let rows = job.part.row_count(job.batch);
        self.per_stage + self.per_row * u32::try_from(rows).unwrap_or(u32::MAX)
    }
}

/// What moves between devices, and what that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// Where values come from.
    pub from: DeviceId,
    /// Where they go.
    pub to: DeviceId,
}
