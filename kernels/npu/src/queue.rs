//! An NPU whose back end computes while the device's thread waits or does other things.

use std::fmt;
use std::sync::Arc;

use super::backend::Started;
use super::device::NpuDevice;
use super::stage_run::StagePieces;
use lapwing_model::device::{
    BlockingDevice, Completed, Device, DeviceError, DeviceInfo, Notify, Observer, Preparer, RunId,
    StageRun, TensorSet, Work,
};

/// An [`NpuDevice`] as a queue of depth 1: graphs of a back end with completions of its own
/// ([`PreparedGraph::start`](super::PreparedGraph::start)) run while the thread that owns the device waits for the
/// notification. Those of others run in [`poll`](Device::poll), as behind [`Blocking`](lapwing_model::device::Blocking).
pub struct NpuQueue {
    info: DeviceInfo,
    device: NpuDevice,
    notify: Notify,
    submitted: Option<(RunId, Work)>,
    running: Option<(RunId, Work, StagePieces)>,
}

impl fmt::Debug for NpuQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = self.running.as_ref().map(|(run, ..)| run);
        f.debug_struct("NpuQueue")
            .field("info", &self.info)
            .field("run", &run)
            .finish_non_exhaustive()
    }
}

impl NpuQueue {
    /// The device, described by `info`.
    pub fn new(info: DeviceInfo, device: NpuDevice) -> NpuQueue {
        let info = DeviceInfo { depth: 1, ..info };
        NpuQueue { info, device, notify: Arc::new(|| ()), submitted: None, running: None }
    }

    /// Begins a run: the first of its graphs is under way, or all of them have ended.
    fn begin(
        &mut self,
        work: &Work,
        observer: &mut dyn Observer,
    ) -> Result<(StagePieces, Started), DeviceError> {
        let mut outputs = TensorSet::default();
        let Some(mut stage) = StageRun::of(work, &mut outputs, observer) else {
            // All of its values are in host memory, which is its own.
            return Err(self.device.unsupported("a transfer out of host memory".to_owned()));
        };
        let mut pieces = StagePieces::new(&self.device, &mut stage)?;
        let started = self.go_on(&mut pieces, work, observer)?;
        Ok((pieces, started))
    }

    /// Loads and starts graphs until one is under way or all have ended.
    fn go_on(
        &self,
        pieces: &mut StagePieces,
        work: &Work,
        observer: &mut dyn Observer,
    ) -> Result<Started, DeviceError> {
        while pieces.load(&self.device, &work.payload.values, observer)? {
            if pieces.start(&self.notify, observer)? == Started::Running {
                return Ok(Started::Running);
            }
            pieces.unload(&self.device)?;
        }
        Ok(Started::Ended)
    }

    /// The graph under way has ended with this result.
    fn ended(
        &self,
        result: Result<(), DeviceError>,
        pieces: &mut StagePieces,
        work: &Work,
        observer: &mut dyn Observer,
    ) -> Result<Started, DeviceError> {
        result?;
        pieces.unload(&self.device)?;
        self.go_on(pieces, work, observer)
    }
}

impl Device for NpuQueue {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Those of the back end.
    fn threads(&self) -> usize {
        self.device.backend().own_threads
    }

    fn start(&mut self, notify: Notify) {
        self.notify = notify;
    }

    fn submit(&mut self, run: RunId, work: Work) {
        debug_assert!(self.submitted.is_none(), "more runs than the depth allows");
        self.submitted = Some((run, work));
    }

    fn poll(&mut self, observer: &mut dyn Observer) -> Option<Completed> {
        let (run, work, progress) = match self.running.take() {
            Some((run, work, mut pieces)) => match pieces.finish(observer) {
                None => {
                    self.running = Some((run, work, pieces));
                    return None;
                }
                Some(result) => {
                    let progress = self.ended(result, &mut pieces, &work, observer);
                    (run, work, progress.map(|started| (pieces, started)))
                }
            },
            None => {
                let (run, work) = self.submitted.take()?;
                let progress = self.begin(&work, observer);
                (run, work, progress)
            }
        };
        let result = match progress {
            Ok((pieces, Started::Running)) => {
                self.running = Some((run, work, pieces));
                return None;
            }
            Ok((pieces, Started::Ended)) => {
                let mut outputs = TensorSet::default();
                pieces.end(observer, &mut outputs);
                Ok(outputs)
            }
            Err(error) => Err(error),
        };
        Some(Completed { run, result, stamps: None })
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        self.device.preparer()
    }
}
