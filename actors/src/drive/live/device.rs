//! A device of a live engine.

use std::sync::Arc;

use lapwing_kernels::device::Device;
use lapwing_plan::time::TimeModel;

/// A device in real time. With a time model it is *throttled*: it computes true values, and each run
/// ends at the modelled time or when the device is done, whichever is later.
pub struct LiveDevice {
    /// Computes the stages.
    pub device: Box<dyn Device>,
    /// The time model to which it is throttled.
    pub time: Option<Arc<dyn TimeModel>>,
}

impl LiveDevice {
    pub(super) fn name(&self) -> &str {
        &self.device.info().name
    }
}
