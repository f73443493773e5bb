//! A device of a live engine.

use std::sync::Arc;

use lapwing_kernels::device::Device;
use lapwing_plan::time::TimeModel;

/// A device in real time. With a time model it is *throttled*: it computes true values, and what it
/// runs ends when the model says, or when it is really done if that is later.
pub struct LiveDevice {
    /// Computes.
    pub device: Box<dyn Device>,
    /// What it is held to.
    pub time: Option<Arc<dyn TimeModel>>,
}

impl LiveDevice {
    pub(super) fn name(&self) -> &str {
        &self.device.info().name
    }
}
