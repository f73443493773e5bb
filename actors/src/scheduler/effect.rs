//! What the scheduler wants done, and what a recording may tell of it.

use lapwing_traces::Nanos;
use lapwing_traces::event::{Milestone, StallCause};

use crate::message::{Delivery, Emission, PrepareGraphs};
use crate::sequence::SequenceId;
use crate::traced::Traced;
use lapwing_plan::DeviceId;

/// Why rows that were ready were not dispatched, and since when.
pub type Stall = (StallCause, Nanos);

/// What the scheduler wants done.
#[derive(Debug)]
pub enum SchedulerEffect {
    /// Send a chunk's first stage, or a part of it, to its device; rows of it may have been held
    /// back.
    Send(DeviceId, Traced<Delivery>, Option<Stall>),
    /// Let that worker look again at what waits there.
    Nudge(DeviceId),
    /// Make static graphs ready, then send [`SchedulerMessage::Prepared`](crate::message::SchedulerMessage::Prepared).
    Prepare(PrepareGraphs),
    /// Hand an event to a caller.
    Emit(Traced<Emission>),
    /// Something happened to a request that a recording may tell.
    Note(Traced<Note>),
    /// Nothing more will come: stop every actor.
    Stop,
}

/// Something that happened to a request; nothing depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The request.
    pub sequence: SequenceId,
    /// What happened.
    pub what: Noted,
}

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// It reached a milestone; the number is the milestone's value.
    Milestone(Milestone, u64),
    /// It gave back that many KV pages; chunks in flight may hold them a little longer.
    Freed(usize),
}
