//! Recorded events. Each has a fixed size of [`WORDS`] 64-bit words.

use crate::clock::Nanos;

mod experts;
mod kinds;
mod limited;
mod need;
mod routed;
mod words;

pub use experts::ExpertRows;
pub use kinds::{
    Activity, ChunkPhase, DraftRole, LaneKind, Milestone, Order, StallCause, WaitMode,
};
pub use limited::Limited;
pub use need::Need;
pub use routed::{Rated, Routed};
pub use words::WORDS;

/// Number of a lane in its recording. A lane is a device queue, an actor, a link or a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId(pub u32);

/// Number of an interned string in its recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// Number of a span; unique in its recording and never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(pub std::num::NonZeroU64);

/// Number of a message between lanes; unique in its recording and never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(pub std::num::NonZeroU64);

/// Tags of a span. Each may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tags {
    /// Chunk.
    pub chunk: Option<u64>,
    /// Request; none if the span serves several.
    pub request: Option<u64>,
    /// Stage of the chunk's route, at most 65 534.
    pub stage: Option<u16>,
    /// Layer of the model, at most 65 534.
    pub layer: Option<u16>,
    /// What the chunk is for in speculative decoding; none for plain passes.
    pub role: Option<DraftRole>,
    /// Which rows the chunk has.
    pub phase: Option<ChunkPhase>,
    /// Rows (tokens) computed.
    pub rows: u32,
    /// Epoch. Work of an epoch that is over is discarded.
    pub epoch: u32,
    /// Bytes read and written.
    pub bytes: u64,
    /// Floating-point operations; a multiply-add counts as two.
    pub flops: u64,
}

/// Name, kind, parent and tags of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanInfo {
    /// Name of the op, stage or span.
    pub name: NameId,
    /// Kind of work.
    pub activity: Activity,
    /// Enclosing span.
    pub parent: Option<SpanId>,
    /// Tags.
    pub tags: Tags,
}

/// What became of the rows of a chunk in speculative decoding. A chunk may have several of these events, as its
/// rows become known; their numbers add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RowOutcome {
    /// Drafted tokens that the chunk verified.
    pub drafted: u32,
    /// Those of them that were accepted.
    pub accepted: u32,
    /// Rows whose results were discarded: of rejected tokens, and of tokens after a rejected one.
    pub wasted: u32,
}

/// A predicted wait for another lane, with its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaitInfo {
    /// Name of the wait.
    pub name: NameId,
    /// Start of the wait.
    pub since: Nanos,
    /// Span whose end was awaited.
    pub target: Option<SpanId>,
    /// How the thread waited.
    pub mode: WaitMode,
    /// Predicted time from the start of the wait to the end of the target, in ns; 0 for no
    /// prediction.
    pub predicted: u64,
    /// Margin in ns: sleep was to end this long before the predicted end.
    pub margin: u64,
    /// Time slept or blocked, in ns, from the start of the wait.
    pub slept: u64,
    /// Time polled after that, in ns.
    pub spun: u64,
}

/// A message at the moment it leaves its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sending {
    /// Number of the message.
    pub message: MessageId,
    /// Span that sent it; none if it comes from outside the recording.
    pub span: Option<SpanId>,
    /// Name of the message.
    pub name: NameId,
    /// Payload copied or moved, in bytes; 0 if only ownership moves.
    pub bytes: u64,
    /// If the message was stalled: the cause, and the time since when it was ready.
    pub stall: Option<(StallCause, Nanos)>,
}

/// Kind of an event, with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// The span's work is known but not yet submitted to its lane.
    Queued(SpanId),
    /// The span's work was submitted to the lane's queue.
    Submitted(SpanId),
    /// The span started.
    Started(SpanId, SpanInfo),
    /// The span ended.
    Finished(SpanId),
    /// The span ended, having started at the given time: one event for work that is recorded only at its end.
    Ran(SpanId, SpanInfo, Nanos),
    /// A message was sent.
    Sent(Sending),
    /// A message was taken out of its mailbox; the given span handles it.
    Received(MessageId, Option<SpanId>),
    /// The lane's thread woke up. It had slept since the given time because its mailbox was empty.
    Woke(Nanos),
    /// A wait for another lane ended.
    Waited(WaitInfo),
    /// Memory with that name and size in bytes was freed.
    Freed(NameId, u64),
    /// A counter has a new value, such as a queue depth or bytes in use.
    Counter(NameId, i64),
    /// The request with this number reached a milestone; the last number is the milestone's value.
    Request(u64, Milestone, u64),
    /// Rows of the chunk with this number were accepted or discarded.
    Rows(u64, RowOutcome),
    /// The first span could not start before the end of the second.
    After(SpanId, SpanId, Order),
    /// The rows of prompts in a chunk were limited.
    Limited(Limited),
    /// A chunk took one of several routes.
    Routed(Routed),
    /// A route that a chunk could take.
    Rated(Rated),
    /// A chunk needs so much time of each device.
    Need(Need),
    /// An op divided its rows between the experts of its layer.
    Experts(ExpertRows),
}

/// An event on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Time.
    pub at: Nanos,
    /// Lane.
    pub lane: LaneId,
    /// Kind, with the data of the event.
    pub kind: EventKind,
}
