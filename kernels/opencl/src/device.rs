//! The device: runs go into its queue, and complete when the driver says so.

mod bind;
mod outputs;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::commands::{Commands, Pending};
use super::discovery::OpenClKind;
use super::encode::Encoder;
use super::model::Model;
use super::ops::PERSISTENT_ROWS;
use super::pack::PACKING;
use super::session::EventState;
use super::watch::Watch;
use lapwing_model::device::{
    Arithmetic, Completed, Device, DeviceError, DeviceInfo, DeviceKind, MemoryDomain, Notify,
    Observer, OpSet, RunId, Task, Work,
};
use lapwing_model::signals;
use outputs::{Delivery, Outputs};

/// Runs that may be in the queue at a time: one that computes, and one that waits behind it.
pub const QUEUE_DEPTH: usize = 2;

/// A queue without progress for this long is lost. Some first launches compile for minutes.
const LOST_AFTER: Duration = Duration::from_secs(180);

/// A processor with an OpenCL driver, and a model's weights and KV pages in its memory.
pub struct OpenClDevice {
    info: DeviceInfo,
    model: Model,
    watch: Watch,
    notify: Option<Notify>,
    runs: VecDeque<Run>,
    /// Why no further run is accepted.
    lost: Option<DeviceError>,
    /// Whether a run has ended.
    has_completed: bool,
    #[cfg(test)]
    fault: Option<Fault>,
}

/// A fault of a driver, for tests.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Events end, and the driver tells nobody.
    NoCallback,
    /// Events never end.
    Silent,
    /// Commands end with this error.
    Failed(i32),
}

/// A run in the queue.
struct Run {
    id: RunId,
    work: Work,
    outputs: Result<Outputs, DeviceError>,
    pending: Option<Pending>,
}

impl fmt::Debug for OpenClDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenClDevice").field("info", &self.info).finish_non_exhaustive()
    }
}

/// What an OpenCL device says of itself.
pub fn device_info(name: &str, domain: MemoryDomain) -> DeviceInfo {
    let info = DeviceInfo::new(name, DeviceKind::Gpu).with_queue(domain, QUEUE_DEPTH);
    let arithmetic = Arithmetic::Own;
    DeviceInfo { ops: OpSet::COMMON, packing: PACKING, arithmetic, ..info }
}

impl OpenClDevice {
    /// Makes the driver fail.
    #[cfg(test)]
    pub(super) fn inject(&mut self, fault: Fault) {
        if fault == Fault::Silent {
            self.watch.set_quiet(LOST_AFTER);
        }
        self.fault = Some(fault);
    }

    #[cfg(test)]
    pub(super) fn session(&self) -> &super::session::Session {
        &self.model.session
    }

    /// Whether runs of few rows are computed by a persistent kernel.
    pub fn has_persistent(&self) -> bool {
        self.model.kernels.has_persistent()
    }

    /// The function that the driver calls at the end of a run.
    fn callback(&self) -> Option<Notify> {
        #[cfg(test)]
        if self.fault.is_some() {
            return None;
        }
        self.notify.clone()
    }

    /// The state of the oldest run.
    fn state(&mut self) -> Option<EventState> {
        let run = self.runs.front_mut()?;
        let state = run.pending.as_mut().map_or(EventState::Complete, Pending::state);
        #[cfg(test)]
        match self.fault {
            Some(Fault::Failed(code)) => return Some(EventState::Failed(code)),
            Some(Fault::Silent) => return Some(EventState::Pending),
            _ => {}
        }
        Some(state)
    }

    /// Whether a barrier of the oldest run, which has ended, timed out.
    fn is_timed_out(&self) -> bool {
        let run = self.runs.front();
        run.and_then(|run| run.pending.as_ref()).is_some_and(Pending::is_timed_out)
    }

    /// Files of compiled programs that were not used, and why; they were compiled anew.
    pub fn notes(&self) -> Vec<String> {
        self.model.kernels.refused()
    }

    /// Bytes of the weights that have been copied to the device.
    pub fn weight_bytes(&self) -> usize {
        self.model.weights.bytes()
    }

    /// Adds the commands of a run to the queue.
    fn add(&mut self, commands: &mut Commands, work: &Work) -> Result<Outputs, DeviceError> {
        self.model.kernels.record(work.payload.batch.rows() <= PERSISTENT_ROWS);
        let added = self.add_task(commands, work);
        self.model.kernels.record(false);
        added
    }

    fn add_task(&mut self, commands: &mut Commands, work: &Work) -> Result<Outputs, DeviceError> {
        match &work.task {
            Task::Nodes { nodes, writes, to, .. } => {
                let model = &mut self.model;
                let mut encoder = Encoder::new(model, commands, work, nodes.clone(), writes)?;
                encoder.encode()?;
                let stored: Vec<_> = writes.iter().map(|id| (*id, encoder.take(*id))).collect();
                let mut delivery = Delivery::new(&mut self.model, commands, work, *to);
                for (id, stored) in stored {
                    let missing = DeviceError::MissingValue { value: id.0, role: "output" };
                    delivery.output(id, stored.ok_or(missing)?.buffer)?;
                }
                Ok(delivery.outputs())
            }
            Task::Transfer { values, to } => {
                let mut delivery = Delivery::new(&mut self.model, commands, work, *to);
                for id in values.iter() {
                    delivery.transfer(*id)?;
                }
                Ok(delivery.outputs())
            }
        }
    }

    /// Has the oldest run watched.
    fn watch_oldest(&self) {
        let pending = self.runs.front().and_then(|run| run.pending.as_ref());
        self.watch.set_running(self.runs.len(), pending.and_then(Pending::end));
    }

    /// Why the device is not used any further: for a reason of its own, or because another model lost the queue.
    fn loss(&self) -> Option<DeviceError> {
        let by_another = || {
            let reason = "its queue failed in a run of another model".to_owned();
            DeviceError::Failed { device: self.info.name.clone(), reason }
        };
        self.lost.clone().or_else(|| self.model.session.is_lost().then(by_another))
    }

    fn lose(&mut self, reason: &str) -> DeviceError {
        self.model.session.lose();
        let device = self.info.name.clone();
        let reason = format!("{reason}; the device is not used any further in this process");
        self.lost.get_or_insert(DeviceError::Failed { device, reason }).clone()
    }

    /// Gives up a run whose commands may go on: what they use stays as it is.
    fn abandon(&self, run: Run) {
        if run.pending.as_ref().is_some_and(Pending::writes_pages) {
            self.model.kv.withhold(&run.work.payload.batch);
        }
        std::mem::forget(run);
    }
}

impl Device for OpenClDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn threads(&self) -> usize {
        0
    }

    fn start(&mut self, notify: Notify) {
        self.watch.set_notify(Arc::clone(&notify));
        self.notify = Some(notify);
    }

    fn submit(&mut self, id: RunId, work: Work) {
        if let Some(error) = self.loss() {
            self.runs.push_back(Run { id, work, outputs: Err(error), pending: None });
            self.notify.iter().for_each(|notify| notify());
            return;
        }
        let mut commands = Commands::begin(&self.model.session);
        let outputs = self.add(&mut commands, &work);
        let (pending, ended) = commands.end(self.callback());
        let ended = ended.map_err(|error| error.of_run(&self.info.name));
        let outputs = outputs.and_then(|outputs| ended.map(|()| outputs));
        self.runs.push_back(Run { id, work, outputs, pending: Some(pending) });
        self.watch_oldest();
    }

    /// On a CPU, a thread that polls would take a core from the driver.
    fn completion_probe(&self) -> Option<Notify> {
        let is_gpu = self.model.session.info().kind == OpenClKind::Gpu;
        is_gpu.then(|| self.watch.completion_probe())
    }

    fn poll(&mut self, observer: &mut dyn Observer) -> Option<Completed> {
        let failed = match self.state()? {
            EventState::Complete if self.is_timed_out() => {
                Some(self.lose("a barrier of its persistent kernel timed out"))
            }
            EventState::Complete => None,
            EventState::Pending if self.loss().is_some() => self.loss(),
            EventState::Pending if self.watch.quiet() < LOST_AFTER => return None,
            EventState::Pending => {
                let limit = LOST_AFTER.as_secs();
                Some(self.lose(&format!("its queue made no progress for {limit} s")))
            }
            EventState::Failed(code) => {
                let name = cl3::error_codes::error_text(code);
                Some(self.lose(&format!("a run failed with {name} ({code})")))
            }
        };
        let run = self.runs.pop_front()?;
        if !std::mem::replace(&mut self.has_completed, true) {
            // Threads of the driver may have compiled for it.
            signals::keep(|| ());
        }
        self.watch_oldest();
        if let Some(error) = failed {
            let id = run.id;
            self.abandon(run);
            return Some(Completed { run: id, result: Err(error), stamps: None });
        }
        let Run { id, work, outputs, pending } = run;
        let stamps = pending.as_ref().and_then(Pending::stamps);
        let result = match outputs {
            Err(error) => Err(error),
            Ok(outputs) => {
                let results = pending.map(Pending::results).unwrap_or_default();
                Ok(outputs.tensors(&self.model, results))
            }
        };
        if let (Ok(_), Task::Nodes { nodes, .. }) = (&result, &work.task) {
            observer.nodes_done(nodes.clone());
        }
        Some(Completed { run: id, result, stamps })
    }
}

impl Drop for OpenClDevice {
    fn drop(&mut self) {
        if self.loss().is_some() {
            // Waiting for it could take forever.
            std::mem::take(&mut self.runs).into_iter().for_each(|run| self.abandon(run));
        }
        // They end before the memory goes that they use in place.
        self.runs.clear();
    }
}
