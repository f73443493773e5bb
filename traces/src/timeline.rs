//! The timeline: a recording's events put together into lanes, spans, messages and waits.

use std::collections::BTreeMap;

use crate::clock::Nanos;
use crate::event::{Activity, LaneKind, Milestone, SpanId, StallCause, Tags, WaitMode};
use crate::recording::Recording;

mod build;
mod slots;

/// A run: what happened on every lane, and what waited for what. Times are those of the recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Facts about the run.
    pub meta: BTreeMap<String, String>,
    /// Lanes, by the index that spans name.
    pub lanes: Vec<Lane>,
    /// Spans by start, then by end (longest first), then by number.
    pub spans: Vec<Span>,
    /// Messages by the time of sending.
    pub messages: Vec<Message>,
    /// Predicted waits by their end.
    pub waits: Vec<Wait>,
    /// Sleeps for want of messages, by their end.
    pub sleeps: Vec<Sleep>,
    /// Counters with their values over time.
    pub counters: Vec<Counter>,
    /// What happened to requests, by time.
    pub milestones: Vec<RequestMilestone>,
    /// Memory given back, by time.
    pub freed: Vec<Freed>,
    /// Events that found no room when they were recorded.
    pub dropped: u64,
    /// Events that say nothing because their counterpart is missing: an end without a start.
    pub orphans: u64,
}

/// A row of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Name, such as `cpu` or `scheduler`.
    pub name: String,
    /// What it is.
    pub kind: LaneKind,
    /// Most outer spans at the same time; each has a slot below this.
    pub slots: usize,
}

/// One piece of work on a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Number in the recording.
    pub id: SpanId,
    /// Index of the lane.
    pub lane: usize,
    /// Slot of the lane; a span inside another one is in its slot.
    pub slot: usize,
    /// Index of the span on the same lane that contains it.
    pub parent: Option<usize>,
    /// Depth below its outermost ancestor, which has 0.
    pub depth: usize,
    /// Name of the op, stage or span.
    pub name: String,
    /// Kind of work.
    pub activity: Activity,
    /// Its work was known.
    pub queued: Option<Nanos>,
    /// Its work was handed to the lane's queue.
    pub submitted: Option<Nanos>,
    /// Began.
    pub start: Nanos,
    /// Ended; for one that never did, the end of the recording.
    pub end: Nanos,
    /// Whether its end was recorded.
    pub finished: bool,
    /// What it is about.
    pub tags: Tags,
}

impl Span {
    /// Nanoseconds from start to end.
    pub fn duration(&self) -> u64 {
        self.end.0 - self.start.0
    }
}

/// A message from one span to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Index of the span that sent it; none if it came from outside.
    pub from: Option<usize>,
    /// Index of the span that acted on it; none if nothing did.
    pub to: Option<usize>,
    /// Index of the lane that sent it.
    pub from_lane: usize,
    /// Index of the lane that took it out of its mailbox; none if nothing did.
    pub to_lane: Option<usize>,
    /// What kind of message.
    pub name: String,
    /// Left its sender.
    pub sent: Nanos,
    /// Taken out of the mailbox.
    pub received: Option<Nanos>,
    /// Payload that is copied or moved.
    pub bytes: u64,
    /// Why it was held back before, and since when it could have gone.
    pub stall: Option<(StallCause, Nanos)>,
}

/// A predicted wait of one lane for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Index of the lane that waited.
    pub lane: usize,
    /// Which kind of wait.
    pub name: String,
    /// Index of the span that was waited for.
    pub target: Option<usize>,
    /// How.
    pub mode: WaitMode,
    /// Began.
    pub start: Nanos,
    /// Ended.
    pub end: Nanos,
    /// Predicted time from start to the end of what is waited for, in ns; 0 for none.
    pub predicted: u64,
    /// Sleeping was to end this much before the predicted end, in ns.
    pub margin: u64,
    /// Slept or blocked, in ns, from the beginning on.
    pub slept: u64,
    /// Polled, in ns, after that.
    pub spun: u64,
}

/// A lane's thread slept for want of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// Index of the lane.
    pub lane: usize,
    /// From.
    pub start: Nanos,
    /// To.
    pub end: Nanos,
}

/// A number over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name, with its unit.
    pub name: String,
    /// Index of the lane that counts.
    pub lane: usize,
    /// Values by time; each holds until the next one.
    pub values: Vec<(Nanos, i64)>,
}

/// A request at a milestone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestMilestone {
    /// The request.
    pub request: u64,
    /// The milestone.
    pub milestone: Milestone,
    /// When.
    pub at: Nanos,
    /// The milestone's value, such as a number of tokens.
    pub value: u64,
}

/// Memory given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freed {
    /// Index of the lane.
    pub lane: usize,
    /// What for.
    pub name: String,
    /// When.
    pub at: Nanos,
    /// Bytes.
    pub bytes: u64,
}

impl Timeline {
    /// Puts a recording together.
    pub fn new(recording: &Recording) -> Timeline {
        build::build(recording)
    }

    /// Start of the first span, and end of the last; both 0 without spans.
    pub fn extent(&self) -> (Nanos, Nanos) {
        let start = self.spans.iter().map(|s| s.start).min().unwrap_or_default();
        let end = self.spans.iter().map(|s| s.end).max().unwrap_or_default();
        (start, end)
    }

    /// First start to last end of all spans, in ns.
    pub fn makespan(&self) -> u64 {
        let (start, end) = self.extent();
        end.0 - start.0
    }

    /// Indices of the spans that lie in no other, by start.
    pub fn outer(&self) -> impl Iterator<Item = usize> {
        (0..self.spans.len()).filter(|i| self.spans[*i].parent.is_none())
    }

    /// Indices of the spans that lie in no other, in the order in which a slot runs them: by start,
    /// then by end, so that what takes no time comes before what begins at the same time.
    pub(crate) fn outer_in_turn(&self) -> Vec<usize> {
        let mut outer: Vec<usize> = self.outer().collect();
        outer.sort_by_key(|span| {
            let span = &self.spans[*span];
            (span.start, span.end, span.id)
        });
        outer
    }

    /// By lane: its outer spans, [in turn](Timeline::outer_in_turn).
    pub(crate) fn turns(&self) -> Vec<Vec<usize>> {
        let mut turns = vec![Vec::new(); self.lanes.len()];
        for span in self.outer_in_turn() {
            turns[self.spans[span].lane].push(span);
        }
        turns
    }

    /// Whether times are those of a simulation.
    pub fn is_virtual(&self) -> bool {
        self.meta.get("clock").is_some_and(|clock| clock == "virtual")
    }
}
