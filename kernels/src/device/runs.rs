//! Runs that the caller waits for.

use std::sync::Arc;

use super::error::DeviceError;
use super::observer::Observer;
use super::work::{Device, RunId, Work};
use crate::completion::Flag;
use crate::tensor::set::TensorSet;

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
        let run = self.next;
        self.next = RunId(run.0 + 1);
        device.submit(run, work);
        loop {
            self.completed.take();
            if let Some(completed) = device.poll(observer) {
                return completed.result;
            }
            self.completed.park();
        }
    }
}
