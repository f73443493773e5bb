//! Static graphs, prepared before they run.

use std::ops::Range;

use super::{DeviceError, ModelId, Observer};
use crate::part::{OperandOrder, Share};

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

/// A static graph: its nodes, the output channels that it computes, and its fixed number of rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GraphKey {
    /// The model.
    pub model: ModelId,
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
