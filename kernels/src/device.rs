//! What every processor offers: run a stage of a graph over a batch of rows.

use std::fmt;
use std::ops::Range;

use crate::graph::ValueId;
use crate::kv::PageId;
use crate::op::Op;
use crate::part::{OperandOrder, Part, Share};
pub use crate::tensor::{Slot, SlotPool, SlotStats, Tensor, TensorSet};

mod error;

pub use error::DeviceError;

/// Rows to compute, as a device sees them: no request, no text, no channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Token id of each row.
    pub ids: Vec<u32>,
    /// Position of each row in its sequence.
    pub positions: Vec<u32>,
    /// Sequences that the rows belong to, in row order, without gaps.
    pub spans: Vec<BatchSpan>,
    /// Rows whose logits are wanted, ascending.
    pub selected: Vec<usize>,
}

/// Consecutive rows of one sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSpan {
    /// Rows of the batch.
    pub rows: Range<usize>,
    /// Position of the first row; the cache holds all positions before it.
    pub start: usize,
    /// KV pages of the sequence, from position 0 to at least the last row.
    pub pages: Vec<PageId>,
}

impl Batch {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.ids.len()
    }

    /// Appends the rows of one sequence. `selected` are the offsets, within `ids`, of the rows
    /// whose logits are wanted, ascending.
    pub fn push(&mut self, ids: &[u32], start: usize, pages: Vec<PageId>, selected: Range<usize>) {
        let first = self.rows();
        self.ids.extend_from_slice(ids);
        self.positions.extend((start..start + ids.len()).map(|p| p as u32));
        self.spans.push(BatchSpan { rows: first..first + ids.len(), start, pages });
        self.selected.extend(selected.map(|row| first + row));
    }
}

/// Told how far a stage is. What a stage does, it does one after another, so that each step begins
/// where the one before it ends.
pub trait Observer {
    /// That node of the graph has been computed. Of nodes that a device computes together, all but
    /// the last are reported when it begins with them, so that their time lies at the last.
    fn node_done(&mut self, node: usize);

    /// Something else has been done.
    fn step_done(&mut self, _step: Step) {}
}

/// What a stage may do beside computing nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Prepared a static graph of that many rows, because the plan said so.
    Prepared {
        /// First of its nodes.
        first: usize,
        /// One past the last of its nodes.
        end: usize,
        /// Rows of the graph.
        rows: usize,
        /// Bytes that it keeps.
        bytes: u64,
    },
    /// Copied values into another layout or precision, or into padding and out of it.
    Converted {
        /// Bytes read and written.
        bytes: u64,
    },
}

/// Nobody looks.
impl Observer for () {
    fn node_done(&mut self, _node: usize) {}
}

/// One stage to run, or a part of it.
pub struct Work<'a> {
    /// Nodes of the graph.
    pub nodes: Range<usize>,
    /// Which of the rows and features.
    pub part: &'a Part,
    /// May graphs be prepared on the spot.
    pub prepare: Prepare,
    /// All rows of the chunk.
    pub batch: &'a Batch,
    /// Values that earlier stages wrote, with all their rows and features.
    pub inputs: &'a TensorSet,
    /// Values of `nodes` that later stages read, or the graph's output. Ascending.
    pub writes: &'a [ValueId],
    /// Those values, with the part's rows and features.
    pub outputs: &'a mut TensorSet,
    /// Told of every node.
    pub observer: &'a mut dyn Observer,
}

impl fmt::Debug for Work<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Work");
        debug.field("nodes", &self.nodes).field("part", &self.part).field("batch", &self.batch);
        debug.finish_non_exhaustive()
    }
}

/// When a device's static graphs are prepared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Prepare {
    /// Before they are needed; a graph that is not there is an error.
    #[default]
    Ahead,
    /// Where one is missing, when it is needed. It makes no other room for it than that of graphs
    /// which no [`Preparer`] has asked for, and does not keep it where that is not enough.
    OnTheSpot,
}

/// A kind of processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// Runs everything.
    Cpu,
    /// Runs everything, for any number of rows.
    Gpu,
    /// Runs prepared, static graphs of ops whose rows do not depend on each other or on their
    /// position.
    Npu,
}

impl DeviceKind {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Gpu => "gpu",
            DeviceKind::Npu => "npu",
        }
    }
}

/// What a planner has to know of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name, such as `gpu`; unique in an engine.
    pub name: String,
    /// Kind of processor.
    pub kind: DeviceKind,
    /// Row counts for which it can have prepared graphs, ascending; empty if it takes any.
    pub sizes: Vec<usize>,
    /// Bytes that graphs in use at the same time may take, which a planner can sum with
    /// [`graph_bytes`](crate::npu::array::graph_bytes); `None` where there is no limit or there
    /// are no graphs.
    pub budget: Option<u64>,
}

impl DeviceInfo {
    /// Some NPU, for questions of its kind only.
    pub(crate) const NPU: DeviceInfo =
        DeviceInfo { name: String::new(), kind: DeviceKind::Npu, sizes: Vec::new(), budget: None };

    /// Whether it can run an op.
    pub fn runs(&self, op: &Op) -> bool {
        let is_static = matches!(
            op,
            Op::MatMul { .. } | Op::RmsNorm { .. } | Op::Gated(_) | Op::Add | Op::SoftCap { .. }
        );
        self.kind != DeviceKind::Npu || is_static
    }
}

/// A processor. It owns its weights, and lives on one thread.
pub trait Device: Send {
    /// Name, such as `cpu`.
    fn name(&self) -> &str;

    /// Threads that compute while a stage runs, the caller's included.
    fn threads(&self) -> usize {
        1
    }

    /// Runs a stage, or a part of it, to its end.
    ///
    /// # Errors
    /// [`DeviceError`]; the rows of this batch are then lost, other sequences are not.
    fn run(&mut self, work: Work<'_>) -> Result<(), DeviceError>;

    /// For a device that runs prepared graphs: what prepares them, on another thread.
    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        None
    }
}

/// A static graph: the nodes, the features of their outputs, and the rows that it is made for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GraphKey {
    /// Nodes of the model's graph.
    pub nodes: Range<usize>,
    /// Features of its outputs.
    pub features: Share,
    /// Rows.
    pub rows: usize,
    /// How it multiplies.
    pub order: OperandOrder,
}

/// Prepares static graphs for a device, beside it. What a preparer has made, or was asked for and
/// found ready, stays ready until a preparer evicts it and says so.
pub trait Preparer: Send {
    /// Makes the graphs ready to run, each checked against the reference before it is; those that
    /// are ready already cost nothing. Neither these graphs nor those of `keep` are evicted for
    /// it. Reports a [`Step::Prepared`] for each graph that it makes.
    ///
    /// # Errors
    /// [`DeviceError`] for the first graph that the device cannot have, at all or
    /// ([`DeviceError::NoRoom`]) beside those of `keep`. The device can be used without it, but
    /// what was ready before may have been evicted: ask again for what is needed.
    fn prepare(
        &mut self,
        keys: &[GraphKey],
        keep: &[GraphKey],
        observer: &mut dyn Observer,
    ) -> Result<Prepared, DeviceError>;
}

/// What a [`Preparer`] has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Graphs that were made; the others were there.
    pub made: Vec<GraphKey>,
    /// Graphs that had to go for them.
    pub evicted: Vec<GraphKey>,
    /// Bytes that all graphs keep now.
    pub bytes: u64,
}
