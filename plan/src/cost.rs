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

    /// Time of a device to copy values between its memory and the host's; `bytes` counts reads and writes.
    fn transfer_time(&self, _device: DeviceId, bytes: u64) -> Duration {
        self.copy_time(bytes)
    }

    /// Time to prepare a static graph.
    fn prepare_time(&self, device: DeviceId, key: &GraphKey) -> Duration;
}

impl<C: CostModel + ?Sized> CostModel for Arc<C> {
    fn source(&self) -> String {
        (**self).source()
    }

    fn job_time(&self, device: DeviceId, job: &Job<'_>) -> Duration {
        (**self).job_time(device, job)
    }

    fn sync_time(&self, crossing: Crossing) -> Duration {
        (**self).sync_time(crossing)
    }

    fn copy_time(&self, bytes: u64) -> Duration {
        (**self).copy_time(bytes)
    }

    fn transfer_time(&self, device: DeviceId, bytes: u64) -> Duration {
        (**self).transfer_time(device, bytes)
    }

    fn prepare_time(&self, device: DeviceId, key: &GraphKey) -> Duration {
        (**self).prepare_time(device, key)
    }
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
        // A rate in bytes per second may have digits that only its representation has.
        let (sync, rate) = (self.sync, (self.copy_rate / 1e6).round() / 1e3);
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

    fn transfer_time(&self, device: DeviceId, bytes: u64) -> Duration {
        let link = self.devices.get(device.0).and_then(|device| device.link_time(bytes));
        link.unwrap_or_else(|| self.copy_time(bytes))
    }

    fn prepare_time(&self, device: DeviceId, key: &GraphKey) -> Duration {
        self.devices[device.0].prepare_time(key)
    }
}

/// Predictions for devices that take the modelled times, as simulated ones do: a transfer takes the time of its
/// device's model, too.
#[derive(Clone)]
pub struct AsSimulated {
    /// The models that drive the devices.
    pub models: Modelled,
    /// Names of the devices whose time follows a law of the caller's own.
    pub own: Vec<String>,
}

impl CostModel for AsSimulated {
    fn source(&self) -> String {
        let source = self.models.source();
        match &self.own[..] {
            [] => source,
            own => format!("{source}; laws of the caller's own: {}", own.join(", ")),
        }
    }

    fn job_time(&self, device: DeviceId, job: &Job<'_>) -> Duration {
        self.models.job_time(device, job)
    }

    fn sync_time(&self, crossing: Crossing) -> Duration {
        self.models.sync_time(crossing)
    }

    fn copy_time(&self, bytes: u64) -> Duration {
        self.models.copy_time(bytes)
    }

    fn transfer_time(&self, device: DeviceId, bytes: u64) -> Duration {
        self.models.devices[device.0].transfer_time(bytes)
    }

    fn prepare_time(&self, device: DeviceId, key: &GraphKey) -> Duration {
        self.models.prepare_time(device, key)
    }
}
