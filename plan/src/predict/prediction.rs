//! The result of a prediction.

use std::time::Duration;

use crate::moment::LaneWork;

/// The predicted execution of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// Time from the first start to the last finish.
    pub makespan: Duration,
    /// Busy time of each device, indexed by [`DeviceId`](crate::DeviceId), including the copies that
    /// merge parts.
    pub busy: Vec<Duration>,
    /// Work of each device, by the same numbers.
    pub lanes: Vec<LaneWork>,
    /// Of a chunk alone, the time of each part of its stages, in order; none of several chunks, and of stages that choose tokens.
    pub parts: Vec<Duration>,
    /// Number of chunks.
    pub chunks: usize,
    /// Total time of all copies.
    pub copy: Duration,
}

impl Prediction {
    /// Busy time of the busiest device: a lower bound of the makespan for any order of the same work.
    pub fn busiest(&self) -> Duration {
        self.busy.iter().max().copied().unwrap_or_default()
    }
}
