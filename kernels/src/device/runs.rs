//! Runs that the caller waits for.

use std::sync::Arc;
use std::time::Duration;

use super::error::DeviceError;
use super::observer::Observer;
use super::work::{Completed, Device, RunId, Work};
use crate::completion::Flag;
use crate::tensor::set::TensorSet;

/// Questions to a driver that can be asked for the end of a run, one after another; a question takes about
/// 1 µs. Later ones are this far apart.
const QUESTIONS: usize = 300;
const ASK: Duration = Duration::from_micros(50);

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
        let asker = device.asker();
        let mut questions = 0;
        loop {
            self.completed.take();
            if let Some(completed) = device.poll(observer) {
                return completed;
            }
            let Some(ask) = &asker else {
                self.completed.park();
                continue;
            };
            questions += 1;
            let is_told = questions > QUESTIONS && self.completed.park_timeout(ASK);
            if !is_told {
                ask();
            }
        }
    }
}
