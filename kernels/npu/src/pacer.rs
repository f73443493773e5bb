//! Predicts how long graphs take to be made or to be read.

use std::sync::Arc;
use std::time::Duration;

use lapwing_model::device::GraphKey;
use lapwing_model::graph::Graph;
use lapwing_model::sync::{Mutex, lock};

use super::backend::GraphMemory;
use super::graph_folder::GraphFolder;
use super::pace::Pace;
use super::spec::GraphSpec;

/// The pace of a device, which it shares with its preparers. It is not locked while a graph is made, so that a prediction
/// never waits for one. Clones share it.
#[derive(Clone)]
pub(super) struct Pacer {
    device: Arc<str>,
    graph: Arc<Graph>,
    memory: GraphMemory,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    pace: Pace,
    /// Where graphs, and the pace, are kept.
    folder: Option<GraphFolder>,
}

impl Pacer {
    pub(super) fn new(device: &Arc<str>, graph: &Arc<Graph>, memory: GraphMemory) -> Pacer {
        let (device, graph) = (Arc::clone(device), Arc::clone(graph));
        Pacer { device, graph, memory, state: Arc::default() }
    }

    /// Goes on with the pace of a folder, and keeps it there.
    pub(super) fn keep(&self, folder: Option<GraphFolder>) {
        let pace = folder.as_ref().and_then(GraphFolder::pace);
        let mut state = lock(&self.state);
        state.pace = pace.unwrap_or(state.pace);
        state.folder = folder;
    }

    /// Records that graphs of so many bytes took a time: to be read from disk, or to be made.
    pub(super) fn record(&self, are_read: bool, bytes: u64, time: Duration) {
        let mut state = lock(&self.state);
        state.pace.record(are_read, bytes, time);
        if let Some(folder) = &state.folder {
            folder.save_pace(state.pace);
        }
    }

    /// Predicted time of a graph that is not ready; `None` before one has been measured.
    pub(super) fn predict(&self, key: &GraphKey) -> Option<Duration> {
        let spec = GraphSpec::new(&self.graph, key, &self.device).ok()?;
        let bytes = self.memory.bytes(&self.graph, key);
        let state = lock(&self.state);
        let is_kept = state.folder.as_ref().is_some_and(|folder| folder.may_have(&spec));
        // Before the first one was read: no longer than to make it.
        let read = state.pace.time(true, bytes).filter(|_| is_kept);
        read.or_else(|| state.pace.time(false, bytes))
    }
}
