//! Events in virtual time, ordered by (time, number).

use std::cmp::Ordering;

use lapwing_kernels::device::TensorSet;
use lapwing_kernels::graph::ValueId;
use lapwing_traces::Nanos;

use super::sharing::{Due, Ran};
use crate::message::{Chunk, Delivery, GraphsPrepared, SchedulerMessage, Traced};

/// An event with its time.
pub(super) struct Event {
    pub(super) at: Nanos,
    pub(super) number: u64,
    pub(super) what: What,
}

/// The kind of an event.
pub(super) enum What {
    /// A message from outside is sent to the scheduler.
    Outside(Box<Traced<SchedulerMessage>>),
    Scheduler(Box<Traced<SchedulerMessage>>),
    Arrived(usize, Traced<Delivery>),
    Nudged(usize),
    Ran(usize, Box<Ran>),
    Merged(usize, Traced<Box<Chunk>>, Result<TensorSet, ValueId>),
    Prepared(usize, Box<GraphsPrepared>),
    /// An event of devices that share resources.
    Due(Due),
}

impl What {
    /// Whether the event belongs to finite work, unlike the renderer's periodic frames.
    pub(super) fn is_work(&self) -> bool {
        !matches!(self, What::Due(Due::Frame))
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// Reversed, because the heap gives the greatest first.
    fn cmp(&self, other: &Event) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}
