//! Progress reports from inside a stage.

/// Receives the progress of a stage. The steps of a stage run one after another: each begins where
/// the previous one ended.
pub trait Observer {
    /// A node of the graph has been computed. The nodes of a fused group are reported when the group
    /// begins, except the last one, so the last one carries the time of the group.
    fn node_done(&mut self, node: usize);

    /// A step other than a node has been done.
    fn step_done(&mut self, _step: Step) {}
}

/// A step of a stage other than computing a node.
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

/// Ignores all reports.
impl Observer for () {
    fn node_done(&mut self, _node: usize) {}
}
