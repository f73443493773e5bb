//! Runs of a device.

use lapwing_kernels::device::{DeviceError, RunId, Stamps, TensorSet};
use lapwing_traces::Nanos;
use tracing::Span;

use crate::chunk::Begun;
use crate::drive::modelled::Segment;
use crate::drive::wait::Busy;
use crate::message::{Delivery, Traced};

/// A run that is submitted and not completed.
pub(super) struct Running {
    pub(super) run: RunId,
    pub(super) delivery: Traced<Delivery>,
    pub(super) submitted: Nanos,
    /// Once the device has begun it: counts the threads that compute it, also between polls.
    pub(super) begun: Option<Busy>,
    /// The same, if its chunk has predicted times.
    pub(super) timed: Option<Begun>,
    /// Whether it was submitted while the device was busy.
    pub(super) queued: bool,
    /// The span of its stage, once the device has begun it.
    pub(super) span: Span,
}

/// A run that the device has completed.
pub(super) struct Ended {
    pub(super) delivery: Traced<Delivery>,
    pub(super) submitted: Nanos,
    pub(super) result: Result<TensorSet, DeviceError>,
    pub(super) stamps: Option<Stamps>,
    pub(super) timed: Option<Begun>,
    /// Of a throttled device: what its modelled time consists of.
    pub(super) segments: Vec<Segment>,
    pub(super) span: Span,
}
