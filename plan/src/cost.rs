//! Cost models: predicted times, from which strategies choose.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::GraphKey;

use super::DeviceId;
use super::time::{Crossing, Job, TimeModel};

/// Predicts times. Every prediction is of a device that runs nothing else.
pub trait CostModel: Send + Sync {
    /// Where the numbers come from, in one line, with their error if it is known.
    fn source(&self) -> String;

    /// T: time of a part of a stage on a device, submission included, synchronisation not.
    fn job_time(&self, device: DeviceId, job: &Job<'_>) -> Duration;

    /// T_sync: from the end of a part on one device until another may use its result, and its
    /// next part starts (S2-38).
    fn sync_time(&self, crossing: Crossing) -> Duration;

    /// T_copy: time to put parts together, for the bytes read and written (S2-38).
    fn copy_time(&self, bytes: u64) -> Duration;

    /// Time to prepare a graph.
    fn prepare_time(&self, device: DeviceId, key: &GraphKey) -> Duration;
}

/// Predictions from the models that drive modelled devices. What lies between devices no model
/// says: it is assumed.
#[derive(Clone)]
pub struct Modelled {
    /// Each device's model.
    pub devices: Vec<Arc<dyn TimeModel>>,
    /// Assumed time of a hand-over between two devices.
    pub sync: Duration,
    /// Assumed bytes per second of a copy.
    pub copy_rate: f64,
}

impl CostModel for Modelled {
    fn source(&self) -> String {
        let (sync, rate) = (self.sync, self.copy_rate / 1e9);
        format!(
            "the devices' own time models; assumed: {sync:?} a hand-over, {rate} GB/s for copies"
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
