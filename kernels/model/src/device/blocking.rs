//! Devices that compute on the caller's thread.

use std::fmt;
use std::ops::Range;

use super::batch::Batch;
use super::error::DeviceError;
use super::graphs::{Prepare, Preparer};
use super::info::DeviceInfo;
use super::observer::Observer;
use super::work::{Completed, Device, Notify, RunId, Task, Work};
use crate::graph::ValueId;
use crate::part::Part;
use crate::tensor::set::TensorSet;

/// One stage to run, or a part of it.
pub struct StageRun<'a> {
    /// Nodes of the graph.
    pub nodes: Range<usize>,
    /// Which of the rows and output channels.
    pub part: &'a Part,
    /// May graphs be prepared on the spot.
    pub prepare: Prepare,
    /// All rows of the chunk.
    pub batch: &'a Batch,
    /// Values that earlier stages wrote, with all their rows and channels.
    pub inputs: &'a TensorSet,
    /// Values of `nodes` that later stages read, or the graph's output. Ascending.
    pub writes: &'a [ValueId],
    /// Those values, with the part's rows and channels.
    pub outputs: &'a mut TensorSet,
    /// Receives the progress.
    pub observer: &'a mut dyn Observer,
}

impl<'a> StageRun<'a> {
    /// The stage of a run; `None` if the run transfers values.
    pub fn of(
        work: &'a Work,
        outputs: &'a mut TensorSet,
        observer: &'a mut dyn Observer,
    ) -> Option<StageRun<'a>> {
        let Task::Nodes { nodes, prepare, writes, .. } = &work.task else { return None };
        Some(StageRun {
            nodes: nodes.clone(),
            part: &work.part,
            prepare: *prepare,
            batch: &work.payload.batch,
            inputs: &work.payload.values,
            writes,
            outputs,
            observer,
        })
    }
}

impl fmt::Debug for StageRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("StageRun");
        debug.field("nodes", &self.nodes).field("part", &self.part).field("batch", &self.batch);
        debug.finish_non_exhaustive()
    }
}

/// A processor that runs a stage to its end on the caller's thread, from host memory to host
/// memory. It owns its weights.
pub trait BlockingDevice: Send {
    /// Name, such as `cpu`.
    fn name(&self) -> &str;

    /// Threads that compute while a stage runs, the caller's included.
    fn threads(&self) -> usize {
        1
    }

    /// Runs a stage, or a part of it, to its end.
    ///
    /// # Errors
    /// [`DeviceError`]; the rows of this batch are then lost, other sequences are not.
    fn run(&mut self, run: StageRun<'_>) -> Result<(), DeviceError>;

    /// For a device that runs prepared graphs: what prepares them, on another thread.
    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        None
    }
}

impl<D: BlockingDevice + ?Sized> BlockingDevice for Box<D> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn threads(&self) -> usize {
        (**self).threads()
    }

    fn run(&mut self, run: StageRun<'_>) -> Result<(), DeviceError> {
        (**self).run(run)
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        (**self).preparer()
    }
}

/// A [`BlockingDevice`] behind the submission interface: it holds one run, and computes it in
/// [`poll`](Device::poll).
#[derive(Debug)]
pub struct Blocking<D> {
    info: DeviceInfo,
    device: D,
    submitted: Option<(RunId, Work)>,
}

impl<D: BlockingDevice> Blocking<D> {
    /// `device` as a queue of depth 1, whatever `info` says of depth.
    pub fn new(mut info: DeviceInfo, device: D) -> Blocking<D> {
        info.depth = 1;
        Blocking { info, device, submitted: None }
    }

    /// The device itself.
    pub fn device(&mut self) -> &mut D {
        &mut self.device
    }
}

impl<D: BlockingDevice> Device for Blocking<D> {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn threads(&self) -> usize {
        self.device.threads()
    }

    /// Without effect: a run completes inside `poll`.
    fn start(&mut self, _notify: Notify) {}

    fn submit(&mut self, run: RunId, work: Work) {
        debug_assert!(self.submitted.is_none(), "more runs than the depth allows");
        self.submitted = Some((run, work));
    }

    fn poll(&mut self, observer: &mut dyn Observer) -> Option<Completed> {
        let (run, work) = self.submitted.take()?;
        let mut outputs = TensorSet::default();
        let result = match StageRun::of(&work, &mut outputs, observer) {
            Some(stage) => self.device.run(stage),
            // All of its values are in host memory, which is its own.
            None => Err(DeviceError::Unsupported {
                device: self.info.name.clone(),
                what: "a transfer out of host memory".to_owned(),
            }),
        };
        Some(Completed { run, result: result.map(|()| outputs), stamps: None })
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        self.device.preparer()
    }
}
