//! Progress reports from inside a stage.

use std::ops::Range;

/// Receives the progress of a stage. The steps of a stage run one after another: each begins where
/// the previous one ended.
pub trait Observer {
    /// One dispatch has computed these nodes of the graph: a single node, or a group that is fused.
    /// A stage reports each of its nodes once, in order.
    fn nodes_done(&mut self, nodes: Range<usize>);

    /// A step other than a node has been done.
    fn step_done(&mut self, _step: Step) {}

    /// Weights that the next nodes need were read from the disk, or are being read for later ones: so many bytes were not in memory when they were
    /// requested. The device waited since the previous step for what the next nodes need; `bytes` are 0 if all of that had been requested before.
    fn weights_read(&mut self, _bytes: u64) {}

    /// How a node that has just been computed divided its rows between the experts of its layer: those that have rows, ascending.
    fn routed(&mut self, _node: usize, _load: ExpertLoad, _rows: &[RowsOfExpert]) {}
}

/// An expert that has rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowsOfExpert {
    /// Its number.
    pub expert: u32,
    /// Its rows.
    pub rows: u32,
}

/// How the rows of a node are divided between the experts of its layer that a device computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpertLoad {
    /// Experts of the layer that the device computes.
    pub experts: usize,
    /// Experts that have rows.
    pub touched: usize,
    /// Rows of all experts together: each row counts once for each of its experts.
    pub rows: usize,
    /// Rows of the expert that has most.
    pub most: usize,
}

impl ExpertLoad {
    /// Experts that have rows, in percent of all.
    pub fn touched_percent(&self) -> usize {
        (100 * self.touched).checked_div(self.experts).unwrap_or(0)
    }

    /// Rows of the expert that has most, in percent of an even share of those that have any.
    pub fn most_percent(&self) -> usize {
        (100 * self.most * self.touched).checked_div(self.rows).unwrap_or(0)
    }
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
    fn nodes_done(&mut self, _nodes: Range<usize>) {}
}
