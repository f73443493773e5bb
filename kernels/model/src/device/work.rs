//! Submission: work goes in, completions come out later.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::batch::{Batch, ModelId};
use super::error::DeviceError;
use super::graphs::{Prepare, Preparer};
use super::info::{DeviceInfo, MemoryDomain};
use super::observer::Observer;
use crate::graph::ValueId;
use crate::part::Part;
use crate::tensor::set::TensorSet;

/// Number of a run on one device, ascending in order of submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);

/// The rows of a chunk and the values that crossed the last border, shared by all parts of a
/// stage and by the devices that run them.
#[derive(Debug, Default)]
pub struct Payload {
    /// Rows.
    pub batch: Batch,
    /// Values that earlier stages wrote, with all their rows and channels.
    pub values: TensorSet,
}

/// Work for a device. It owns or shares everything that it reads, so a device may keep it until the
/// run completes. A device drops it before it reports the completion.
#[derive(Clone, Debug)]
pub struct Work {
    /// The task.
    pub task: Task,
    /// Which rows and output channels of it.
    pub part: Part,
    /// Rows and inputs.
    pub payload: Arc<Payload>,
}

/// The task of a run.
#[derive(Clone, Debug)]
pub enum Task {
    /// Computes nodes of the model's graph.
    Nodes {
        /// The nodes.
        nodes: Range<usize>,
        /// Whether static graphs may be prepared on the spot.
        prepare: Prepare,
        /// Values of `nodes` that later stages read, or the graph's output; ascending.
        writes: Arc<[ValueId]>,
        /// Where those values must be when the run completes.
        to: MemoryDomain,
    },
    /// Copies values between the host's memory and the device's own.
    Transfer {
        /// The values; those that are in `to` already stay there.
        values: Arc<[ValueId]>,
        /// Where they must be when the run completes.
        to: MemoryDomain,
    },
}

impl Work {
    /// The model that the work is for.
    pub fn model(&self) -> ModelId {
        self.payload.batch.model
    }
}

/// A completed run.
#[derive(Debug)]
pub struct Completed {
    /// The run.
    pub run: RunId,
    /// The values that the task requested, or the error. After an error the rows of this
    /// run are lost; other sequences are not.
    pub result: Result<TensorSet, DeviceError>,
    /// When the device began and ended, where it has a clock of its own.
    pub stamps: Option<Stamps>,
}

/// Times of a run by the device's clock, as offsets from its submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// The device began.
    pub begin: Duration,
    /// The device ended.
    pub end: Duration,
}

/// Wakes the thread that owns a device. Any thread may call it, any number of times.
pub type Notify = Arc<dyn Fn() + Send + Sync>;

/// A processor with an in-order queue. It belongs to one thread.
///
/// # How to drive it
/// 1. Call [`start`](Device::start) once, before anything is submitted.
/// 2. [`submit`](Device::submit) up to [`DeviceInfo::depth`] runs. It never waits. Runs execute in
///    order of submission, so a run may read KV rows that an earlier run writes.
/// 3. Call [`poll`](Device::poll) until it returns `None`: after every submission, and whenever the
///    device has called the [`Notify`] function. Runs complete in order of submission. Errors may
///    come late: a run that was accepted can fail, and so can the runs behind it.
/// 4. A device that is dropped waits for its queue, so that no memory is written afterwards.
pub trait Device: Send {
    /// Its description for the planner.
    fn info(&self) -> &DeviceInfo;

    /// Threads of the host that compute while a run executes, the caller's included; 0 for a
    /// processor of its own.
    fn threads(&self) -> usize;

    /// Gives the device the means to wake its thread when a run has completed.
    fn start(&mut self, notify: Notify);

    /// Accepts a run. Never waits.
    fn submit(&mut self, run: RunId, work: Work);

    /// The next completed run, if there is one. Reports progress to `observer` where the device
    /// can; a device that computes on the caller's thread does so here.
    fn poll(&mut self, observer: &mut dyn Observer) -> Option<Completed>;

    /// For a processor whose driver reports the end of a run late: a function that reads the run's status
    /// and calls the [`Notify`] if it has ended. A thread that polls calls it every few µs.
    fn completion_probe(&self) -> Option<Notify> {
        None
    }

    /// For a device with prepared graphs: what prepares them, on another thread.
    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        None
    }
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn info(&self) -> &DeviceInfo {
        (**self).info()
    }

    fn threads(&self) -> usize {
        (**self).threads()
    }

    fn start(&mut self, notify: Notify) {
        (**self).start(notify);
    }

    fn submit(&mut self, run: RunId, work: Work) {
        (**self).submit(run, work);
    }

    fn poll(&mut self, observer: &mut dyn Observer) -> Option<Completed> {
        (**self).poll(observer)
    }

    fn completion_probe(&self) -> Option<Notify> {
        (**self).completion_probe()
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        (**self).preparer()
    }
}

impl fmt::Debug for dyn Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.info().name).finish()
    }
}
