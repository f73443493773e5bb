//! Plans: which device runs which part of the graph.

use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::graph::Graph;

pub mod strategy;

/// Number of a device in the engine, also of its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub usize);

/// A run of ops on one device between two borders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Device that runs it.
    pub device: DeviceId,
    /// Nodes of the graph.
    pub nodes: Range<usize>,
}

/// All stages of a chunk, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Stages; together they cover every node once, in order.
    pub stages: Vec<Stage>,
    /// Why this route was chosen, for the placement report.
    pub reason: String,
}

impl Route {
    /// A route, checked against its graph and the number of devices.
    ///
    /// # Errors
    /// [`PlanError`] when the stages leave out, repeat or reorder nodes, or name a device that
    /// is not there.
    pub fn new(
        stages: Vec<Stage>,
        reason: String,
        graph: &Graph,
        devices: usize,
    ) -> Result<Arc<Route>, PlanError> {
        let mut next = 0;
        for stage in &stages {
            if stage.nodes.start != next || stage.nodes.is_empty() {
                return Err(PlanError::Coverage { found: stage.nodes.clone(), expected: next });
            }
            if stage.device.0 >= devices {
                return Err(PlanError::NoDevice { device: stage.device.0, devices });
            }
            next = stage.nodes.end;
        }
        if next != graph.nodes().len() {
            return Err(PlanError::Coverage { found: next..next, expected: graph.nodes().len() });
        }
        Ok(Arc::new(Route { stages, reason }))
    }
}

/// Why a plan cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Nodes are left out, repeated or reordered.
    #[error(
        "the plan's stages must cover all nodes once and in order: nodes {found:?} stand where node {expected} is due"
    )]
    Coverage {
        /// Nodes of the stage at fault.
        found: Range<usize>,
        /// Node that is due.
        expected: usize,
    },
    /// A device that is not there.
    #[error("the plan names device {device}, but there are {devices}")]
    NoDevice {
        /// Device number.
        device: usize,
        /// Number of devices.
        devices: usize,
    },
}
