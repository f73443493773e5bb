//! Cost models: predicted times, by which strategies compare routes.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::GraphKey;

use crate::device::DeviceId;
use crate::time::{Crossing, Job, TimeModel};

/// Predicts times. Every prediction assumes that the device runs nothing else.
pub trait CostModel: Send + Sync {
    /// Source of the numbers in one line, with their error if it is known.
    fn source(&self) -> String;

    /// T: time of a part of a stage on a device, with submission, without synchronisation.
    fn job_time(&self, device: DeviceId, job: &Job<'_>) -> Duration;

    /// T_sync: from the end of a part on one device until the next part starts on another device
    /// that reads its outputs (HeteroInfer, SOSP 2025, section 4.4).
    fn sync_time(&self, crossing: Crossing) -> Duration;

    /// T_copy: time to merge the parts of a divided stage; `bytes` counts reads and writes
    /// (HeteroInfer, section 4.4).
    fn copy_time(&self, bytes: u64) -> Duration;

    /// Time to prepare a static graph.
    fn prepare_time(&self, device: DeviceId, key: &GraphKey) -> Duration;
}

/// Predictions from the time models of the devices. T_sync and T_copy between devices are assumed
/// constants, since no model covers them.
#[derive(Clone)]
pub struct Modelled {
    /// Time model of each device, indexed by [`DeviceId`].
    pub devices: Vec<Arc<dyn TimeModel>>,
    /// Assumed time of a synchronisation between two devices.
    pub sync: Duration,
    /// Assumed rate of a copy, in bytes per second.
    pub copy_rate: f64,
}

impl CostModel for Modelled {
    fn source(&self) -> String {
        let (sync, rate) = (self.sync, self.copy_rate / 1e9);
        format!(
            "time models of the devices; assumed: {sync:?} per synchronisation, {rate} GB/s for copies"
        )
    }

    fn job_time(&self, device: DeviceId, job: &Job<'_>) -> Duration {
        self.devices[device.0].run_time(job)
    }

    fn sync_time(&self, crossing: Crossing) -> Duration {
        if crossing.from == crossing.to { Duration::ZERO } else { self.sync }
    }

    fn copy_time(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.copy_rate.max(1.0))
    }

    fn prepare_time(&self, device: DeviceId, key: &GraphKey) -> Duration {
        self.devices[device.0].prepare_time(key)
    }
}
