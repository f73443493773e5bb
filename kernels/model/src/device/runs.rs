//! Runs that the caller waits for.

use std::sync::Arc;
use std::time::Duration;

use super::error::DeviceError;
use super::observer::Observer;
use super::work::{Completed, Device, RunId, Work};
use crate::completion::Flag;
use crate::tensor::set::TensorSet;

/// Calls of a device's completion probe in a row, each of about 1 µs.
const PROBES: usize = 300;

/// Interval of the calls after those.
const PROBE_INTERVAL: Duration = Duration::from_micros(50);

/// Submits one run at a time to a device and waits for it, for measurements and tests.
#[derive(Debug, Default)]
pub struct Runs {
    completed: Arc<Flag>,
    next: RunId,
}

impl Runs {
    /// Takes over the notifications of a device.
    pub fn start(device: &mut dyn Device) -> Runs {
        let runs = Runs::default();
        let completed = Arc::clone(&runs.completed);
        device.start(Arc::new(move || _ = completed.set()));
        runs
    }

    /// Submits work and waits for its completion.
    ///
    /// # Errors
    /// [`DeviceError`] of the run.
    pub fn run(
        &mut self,
        device: &mut dyn Device,
        work: Work,
        observer: &mut dyn Observer,
    ) -> Result<TensorSet, DeviceError> {
        self.complete(device, work, observer).result
    }

    /// As [`run`](Runs::run), with the times of the device's clock.
    pub fn complete(
        &mut self,
        device: &mut dyn Device,
        work: Work,
        observer: &mut dyn Observer,
    ) -> Completed {
        let run = self.next;
        self.next = RunId(run.0 + 1);
        device.submit(run, work);
        let probe = device.completion_probe();
        let mut probes = 0;
        loop {
            self.completed.take();
            if let Some(completed) = device.poll(observer) {
                return completed;
            }
            let Some(probe) = &probe else {
                self.completed.park();
                continue;
            };
            probes += 1;
            let is_set = probes > PROBES && self.completed.park_timeout(PROBE_INTERVAL);
            if !is_set {
                probe();
            }
        }
    }
}
