//! A device of a live engine.

use std::sync::Arc;

use lapwing_kernels::cpu::{CoreSet, PinnedThread};
use lapwing_kernels::device::Device;
use lapwing_plan::time::TimeModel;

/// A device in real time. With a time model it is *throttled*: it computes true values, and each run
/// ends at the modelled time or when the device is done, whichever is later.
pub struct LiveDevice {
    /// Computes the stages.
    pub device: Box<dyn Device>,
    /// The time model to which it is throttled.
    pub time: Option<Arc<dyn TimeModel>>,
    /// The cores of the thread that owns the device; `None` for all.
    pub cores: Option<CoreSet>,
}

impl LiveDevice {
    pub(super) fn name(&self) -> &str {
        &self.device.info().name
    }

    /// Whether it runs stages while its worker's thread does other work: it has a queue, or it is held back to its modelled
    /// time.
    pub(super) fn runs_beside_its_worker(&self) -> bool {
        self.device.info().depth > 1 || self.time.is_some()
    }

    /// Pins the calling thread to the device's cores until the guard is dropped. If the system refuses,
    /// the thread runs on any core, and a warning says so.
    pub(in crate::drive) fn pin_thread(&self) -> Option<PinnedThread> {
        let pinned = self.cores.as_ref()?.pin_this_thread();
        pinned.inspect_err(|error| tracing::warn!("device {}: {error}", self.name())).ok()
    }
}
