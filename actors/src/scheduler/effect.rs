//! What the scheduler wants done, and what a recording may tell of it.

use std::sync::Arc;
use std::time::Duration;

use lapwing_traces::Nanos;
use lapwing_traces::event::{Milestone, RowOutcome, StallCause};

use super::copy_page::CopyPage;
use super::rows::Limit;
use crate::chunk::Chunk;
use crate::message::{Delivery, Emission, PrepareGraphs};
use crate::sequence::SequenceId;
use crate::traced::{TraceContext, Traced};
use lapwing_plan::DeviceId;

/// Why rows that were ready were not dispatched, and since when.
pub type Stall = (StallCause, Nanos);

/// An action that the scheduler requests of its driver.
#[derive(Debug)]
pub enum SchedulerEffect {
    /// Send a chunk's first stage, or a part of it, to its device. Holds the stall of its rows, if
    /// they stalled.
    Send(DeviceId, Traced<Delivery>, Option<Stall>),
    /// Copy a cached page before anything that follows is sent. If that fails, send the returned
    /// [`RollBack`](crate::message::RollBack).
    Copy(CopyPage),
    /// Make that worker check its waiting chunks again.
    Nudge(DeviceId),
    /// Prepare static graphs, then send [`crate::message::SchedulerMessage::Prepared`].
    Prepare(Traced<PrepareGraphs>),
    /// Have a device's preparation lane send [`crate::message::SchedulerMessage::Rested`] at that time.
    Rest(DeviceId, Nanos),
    /// Send an event to a caller.
    Emit(Traced<Emission>),
    /// Record an event of a request.
    Note(Traced<Note>),
    /// Stop every actor: the scheduler has ended.
    Stop,
}

/// An event of a request for recordings; no decision depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The request.
    pub sequence: SequenceId,
    /// The event.
    pub what: Noted,
}

/// An event of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noted {
    /// The request reached a milestone, with the milestone's value.
    Milestone(Milestone, u64),
    /// The request released that many KV pages. Chunks in flight may hold them a little longer.
    Freed(usize),
    /// Rows of the chunk with this number were accepted or discarded.
    Rows(u64, RowOutcome),
    /// The prompt rows of the chunk with this number are limited.
    Limited(u64, Limit),
    /// The chunk with this number took one of several routes.
    Routed(u64, RouteChosen),
}

/// Which of several routes a chunk took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteChosen {
    /// Names of the route's devices.
    pub devices: Arc<str>,
    /// Predicted time until the chunk ends.
    pub end: Duration,
    /// Names of the devices of the route that it would have taken on idle devices.
    pub alone: Arc<str>,
    /// Predicted time until it would have ended on that one.
    pub alone_end: Duration,
    /// Whether it passes chunks that wait for the same devices.
    pub is_due: bool,
    /// All routes that it could take, first the one for idle devices; empty if nothing was compared.
    pub rated: Box<[RatedRoute]>,
}

/// A route that a chunk could take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatedRoute {
    /// Names of its devices.
    pub devices: Arc<str>,
    /// Predicted time until the chunk would end on it.
    pub end: Duration,
    /// The same on idle devices.
    pub alone: Duration,
    /// Longest predicted time until one of its devices has done what it was sent before.
    pub busy: Duration,
    /// False if the chunk would have ended earlier on it, but its graphs were not ready.
    pub is_ready: bool,
}

impl RouteChosen {
    /// Records it for a chunk.
    pub(super) fn note(self, chunk: &Chunk, context: TraceContext) -> SchedulerEffect {
        let first = chunk.sequences.first().map(|rows| rows.sequence);
        let sequence = first.unwrap_or(SequenceId(0));
        let what = Noted::Routed(chunk.id, self);
        SchedulerEffect::Note(Traced::new(Note { sequence, what }, context))
    }
}

impl Limit {
    /// Records it for a chunk.
    pub(super) fn note(self, chunk: &Chunk, context: TraceContext) -> SchedulerEffect {
        let first = chunk.sequences.first().map(|rows| rows.sequence);
        let sequence = self.stream.or(first).unwrap_or(SequenceId(0));
        let what = Noted::Limited(chunk.id, self);
        SchedulerEffect::Note(Traced::new(Note { sequence, what }, context))
    }
}
