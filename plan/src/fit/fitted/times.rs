//! A device of a profile as a law of time.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::GraphKey;

use super::Fitted;
use crate::cost::CostModel;
use crate::device::DeviceId;
use crate::shape::convert_bytes;
use crate::time::{Job, TimeModel};

/// The measured times of a device, which drive it in virtual time: ops and conversions at a multiple of their measured speed.
pub struct FittedTimes {
    fitted: Arc<Fitted>,
    device: DeviceId,
    speed: f64,
}

impl FittedTimes {
    /// The device of that number in a profile. With a speed of 0.5, ops take twice their measured time.
    pub fn new(fitted: Arc<Fitted>, device: DeviceId, speed: f64) -> FittedTimes {
        FittedTimes { fitted, device, speed }
    }

    fn at_speed(&self, nanos: f64) -> Duration {
        Duration::from_nanos((nanos / self.speed).round() as u64)
    }

    fn convert_ns_per_byte(&self) -> f64 {
        let device = self.fitted.devices.get(self.device.0);
        device.map_or(0.0, |device| device.fixed.convert_ns_per_byte)
    }
}

impl TimeModel for FittedTimes {
    fn overhead(&self, job: &Job<'_>) -> Duration {
        let device = self.fitted.devices.get(self.device.0);
        device.map_or(Duration::MAX, |device| device.fixed.before(job))
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        match self.fitted.devices.get(self.device.0) {
            Some(device) => self.at_speed(self.fitted.node_time(device, job, node)),
            None => Duration::MAX,
        }
    }

    fn prepare_time(&self, key: &GraphKey) -> Duration {
        self.fitted.prepare_time(self.device, key)
    }

    fn convert_time(&self, bytes: u64) -> Duration {
        self.at_speed(bytes as f64 * self.convert_ns_per_byte())
    }

    fn link_time(&self, bytes: u64) -> Option<Duration> {
        Some(self.fitted.copy_time(bytes))
    }

    fn conversion(&self, job: &Job<'_>) -> Duration {
        let nodes = job.first..job.end;
        self.convert_time(convert_bytes(&self.fitted.graph, nodes, job.part, job.batch))
    }
}
