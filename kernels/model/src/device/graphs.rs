//! Static graphs, prepared before they run.

use std::ops::Range;
use std::time::Duration;

use super::batch::ModelId;
use super::error::DeviceError;
use super::observer::Observer;
use crate::part::{OperandOrder, Share};

/// When a device's static graphs are prepared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Prepare {
    /// Before they are needed; a graph that is not there is an error.
    #[default]
    Ahead,
    /// A missing graph is prepared when it is needed. Only graphs that no [`Preparer`] has requested are
    /// evicted for it; if that frees too little memory, the graph is not cached.
    OnTheSpot,
}

/// A static graph: its nodes, the output channels that it computes, and its fixed number of rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GraphKey {
    /// The model.
    pub model: ModelId,
    /// Nodes of the model's graph.
    pub nodes: Range<usize>,
    /// Output channels that it computes.
    pub features: Share,
    /// Number of rows.
    pub rows: usize,
    /// Operand order of its matmuls.
    pub order: OperandOrder,
}

/// Prepares static graphs for a device on another thread. A graph that a preparer has made or found
/// ready stays ready until a preparer reports its eviction.
pub trait Preparer: Send {
    /// Prepares the graphs and checks each against the reference; graphs that are already ready take no
    /// time. Neither these graphs nor those of `keep` are evicted for it. Reports a
    /// [`Step::Prepared`](super::Step::Prepared) for each graph that it makes.
    ///
    /// # Errors
    /// [`DeviceError`] for the first graph that the device cannot prepare. It is
    /// [`DeviceError::NoRoom`] if only the graphs of `keep` leave too little memory. The device remains
    /// usable, but other ready graphs may have been evicted and must be requested again.
    fn prepare(
        &mut self,
        keys: &[GraphKey],
        keep: &[GraphKey],
        observer: &mut dyn Observer,
    ) -> Result<Prepared, DeviceError>;

    /// Whether graphs are kept on disk for the next start.
    fn keeps_graphs(&self) -> bool {
        false
    }

    /// Records the time in which these graphs were prepared, so that the time of others can be predicted.
    fn took(&mut self, _prepared: &Prepared, _time: Duration) {}

    /// Predicted time to prepare a graph: none if it is ready, otherwise that of reading it from disk or of making it.
    /// `None` before such a graph has been measured.
    fn predict(&self, _key: &GraphKey) -> Option<Duration> {
        None
    }

    /// Whether this graph is on disk, complete and for this device, so that it is read instead of being made.
    fn is_kept(&self, _key: &GraphKey) -> bool {
        false
    }
}

/// Result of a [`Preparer`]'s work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Graphs that were made, or read from disk; the others were there.
    pub made: Vec<GraphKey>,
    /// How many of them were read from disk.
    pub read: usize,
    /// Graphs that had to go for them.
    pub evicted: Vec<GraphKey>,
    /// Bytes that all graphs keep now.
    pub bytes: u64,
}
