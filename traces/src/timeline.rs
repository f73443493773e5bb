//! The timeline: lanes, spans, messages and waits assembled from the events of a recording.

use std::collections::BTreeMap;

use crate::clock::Nanos;
use crate::event::{
    Activity, LaneKind, Limited, Need, Order, RowOutcome, SpanId, StallCause, Tags, WaitMode,
};
use crate::recording::Recording;

mod build;
mod discarded;
mod marks;
mod routes;
mod slots;
mod streams;
mod window;

pub use marks::{Counter, ExpertsOnLane, Freed, RequestMilestone, Sleep};
pub use routes::{RatedRoute, RouteChoice};
pub use streams::{TokenGap, TokenGaps};

/// Joins the names of ops that one dispatch computes together, as in `ffn_down + ffn_residual`.
pub const FUSED: &str = " + ";

/// A run: the spans of every lane, and their dependencies. All times are those of the recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Facts about the run.
    pub meta: BTreeMap<String, String>,
    /// Lanes; spans refer to them by index.
    pub lanes: Vec<Lane>,
    /// Spans by start, then by end (longest first), then by id.
    pub spans: Vec<Span>,
    /// Messages by the time of sending.
    pub messages: Vec<Message>,
    /// Spans that came after others without a message between them, by time.
    pub afters: Vec<After>,
    /// Predicted waits by their end.
    pub waits: Vec<Wait>,
    /// Times during which a lane's thread slept on an empty mailbox, by their end.
    pub sleeps: Vec<Sleep>,
    /// Counters with their values over time.
    pub counters: Vec<Counter>,
    /// Milestones of requests, by time.
    pub milestones: Vec<RequestMilestone>,
    /// By request: its target for the time between two of its tokens, in ns.
    pub gap_targets: BTreeMap<u64, u64>,
    /// By chunk: why it has no more rows of prompts.
    pub limited: BTreeMap<u64, Limited>,
    /// By chunk: which of several routes it took.
    pub routed: BTreeMap<u64, RouteChoice>,
    /// By chunk: what it needs of the devices; nothing in a window, which may have a part of a chunk.
    pub needs: BTreeMap<u64, Vec<Need>>,
    /// Memory freed, by time.
    pub freed: Vec<Freed>,
    /// Rows of experts, by time.
    pub experts: Vec<ExpertsOnLane>,
    /// By chunk: what became of its rows in speculative decoding.
    pub outcomes: BTreeMap<u64, RowOutcome>,
    /// The window of time that is shown, if it is not the whole run.
    pub window: Option<(Nanos, Nanos)>,
    /// Number of events dropped for lack of room.
    pub dropped: u64,
    /// Number of events ignored because their counterpart is missing, such as an end without a start.
    pub orphans: u64,
}

/// A lane: one row of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Name, such as `cpu` or `scheduler`.
    pub name: String,
    /// Kind of the lane.
    pub kind: LaneKind,
    /// Largest number of concurrent outer spans; slots are numbered below this.
    pub slots: usize,
}

/// A piece of work on a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Id in the recording.
    pub id: SpanId,
    /// Index of the lane.
    pub lane: usize,
    /// Slot of the lane; an inner span is in the slot of its parent.
    pub slot: usize,
    /// Index of the enclosing span on the same lane.
    pub parent: Option<usize>,
    /// Nesting depth; 0 for an outer span.
    pub depth: usize,
    /// Name of the op, stage or span.
    pub name: String,
    /// Kind of work.
    pub activity: Activity,
    /// Time at which its work became known.
    pub queued: Option<Nanos>,
    /// Time at which its work was submitted to the lane's queue.
    pub submitted: Option<Nanos>,
    /// Start.
    pub start: Nanos,
    /// End; the end of the recording if no end was recorded.
    pub end: Nanos,
    /// Whether its end was recorded.
    pub finished: bool,
    /// Whether its results were discarded: all of its chunk's rows were, or it was still running when a later epoch
    /// of its request began.
    pub discarded: bool,
    /// Tags.
    pub tags: Tags,
}

impl Span {
    /// Duration in ns.
    pub fn duration(&self) -> u64 {
        self.end.0 - self.start.0
    }

    /// Names of the ops that it computes: several for a fused group, otherwise its own name.
    pub fn ops(&self) -> impl Iterator<Item = &str> {
        self.name.split(FUSED)
    }
}

/// A message from one span to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Index of the span that sent it; none if it came from outside the recording.
    pub from: Option<usize>,
    /// Index of the span that handles it; none if no span does.
    pub to: Option<usize>,
    /// Index of the lane that sent it.
    pub from_lane: usize,
    /// Index of the lane that received it; none if it was not received.
    pub to_lane: Option<usize>,
    /// Name of the message.
    pub name: String,
    /// Time at which it left its sender.
    pub sent: Nanos,
    /// Time at which it was taken out of the mailbox.
    pub received: Option<Nanos>,
    /// Payload copied or moved, in bytes.
    pub bytes: u64,
    /// If it was stalled at its sender: the cause, and the time since when it was ready.
    pub stall: Option<(StallCause, Nanos)>,
}

/// A span that could not start before the end of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    /// Index of the span.
    pub span: usize,
    /// Index of the span before it.
    pub before: usize,
    /// Why it came after it.
    pub order: Order,
}

/// A predicted wait of one lane for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Index of the lane that waited.
    pub lane: usize,
    /// Name of the wait.
    pub name: String,
    /// Index of the span whose end was awaited.
    pub target: Option<usize>,
    /// How the thread waited.
    pub mode: WaitMode,
    /// Start.
    pub start: Nanos,
    /// End.
    pub end: Nanos,
    /// Predicted time from the start of the wait to the end of the target, in ns; 0 for no prediction.
    pub predicted: u64,
    /// Margin in ns: sleep was to end this long before the predicted end.
    pub margin: u64,
    /// Time slept or blocked, in ns, from the start of the wait.
    pub slept: u64,
    /// Time polled after that, in ns.
    pub spun: u64,
}

impl Timeline {
    /// Assembles the timeline of a recording.
    pub fn new(recording: &Recording) -> Timeline {
        build::build(recording, Nanos(0))
    }

    /// Assembles a window of a recording, from one moment to another. What crosses a border is cut at it: spans,
    /// waits, messages and sleep. A span that has not ended lasts until the end of the window. Events without a
    /// counterpart count if they are in the window or after it. The number of dropped events is that of the recording:
    /// [`Recorder::recording_since`](crate::Recorder::recording_since) counts only those of the window.
    pub fn of_window(recording: &Recording, from: Nanos, to: Nanos) -> Timeline {
        window::cut(build::build(recording, from), from, to)
    }

    /// The window, or start of the first span and end of the last; both 0 without spans.
    pub fn extent(&self) -> (Nanos, Nanos) {
        if let Some(window) = self.window {
            return window;
        }
        let start = self.spans.iter().map(|s| s.start).min().unwrap_or_default();
        let end = self.spans.iter().map(|s| s.end).max().unwrap_or_default();
        (start, end)
    }

    /// Makespan: from the first start to the last end of all spans, or the length of the window, in ns.
    pub fn makespan(&self) -> u64 {
        let (start, end) = self.extent();
        end.0 - start.0
    }

    /// Indices of the outer spans (those without a parent), by start.
    pub fn outer(&self) -> impl Iterator<Item = usize> {
        (0..self.spans.len()).filter(|i| self.spans[*i].parent.is_none())
    }

    /// Indices of the outer spans in the order in which a slot runs them: by start, then by end, so
    /// that a span without duration precedes one that starts at the same time.
    pub(crate) fn outer_in_slot_order(&self) -> Vec<usize> {
        let mut outer: Vec<usize> = self.outer().collect();
        outer.sort_by_key(|span| {
            let span = &self.spans[*span];
            (span.start, span.end, span.id)
        });
        outer
    }

    /// Outer spans of each lane, in the order of [`outer_in_slot_order`](Timeline::outer_in_slot_order).
    pub(crate) fn outer_by_lane(&self) -> Vec<Vec<usize>> {
        let mut lanes = vec![Vec::new(); self.lanes.len()];
        for span in self.outer_in_slot_order() {
            lanes[self.spans[span].lane].push(span);
        }
        lanes
    }

    /// Whether the times are simulated.
    pub fn is_virtual(&self) -> bool {
        self.meta.get("clock").is_some_and(|clock| clock == "virtual")
    }
}
