//! What is recorded: typed events, each a fixed number of 64-bit words.

use crate::clock::Nanos;

mod words;

pub use words::WORDS;

/// Number of a lane (a device queue, an actor, a link, a thread) in its recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId(pub u32);

/// Number of an interned text in its recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// Number of a span; unique in its recording and never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(pub std::num::NonZeroU64);

/// Number of a message between lanes; unique in its recording and never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(pub std::num::NonZeroU64);

/// A table of an enum's values with the code and the name of each.
macro_rules! coded {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $code:literal $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$value_doc])* $value),* }

        impl $name {
            /// Every value.
            pub const ALL: &[$name] = &[$($name::$value),*];

            /// Name in reports and exports.
            pub const fn name(self) -> &'static str {
                match self { $($name::$value => $text),* }
            }

            pub(crate) const fn code(self) -> u8 {
                match self { $($name::$value => $code),* }
            }

            pub(crate) const fn from_code(code: u8) -> Option<$name> {
                match code { $($code => Some($name::$value),)* _ => None }
            }
        }
    };
}

coded! {
    /// What a lane is.
    LaneKind {
        /// A processor's queue.
        Device = 0 "device",
        /// An actor of the runtime.
        Actor = 1 "actor",
        /// A path between memories.
        Link = 2 "link",
        /// A channel.
        Channel = 3 "channel",
        /// A thread of the embedding application.
        Thread = 4 "thread",
    }
}

coded! {
    /// What kind of work a span is.
    Activity {
        /// Computing.
        Compute = 0 "compute",
        /// Moving data between memories.
        Copy = 1 "copy",
        /// Changing layout or precision.
        Convert = 2 "convert",
        /// Building a graph, compiling a kernel.
        Prepare = 3 "prepare",
        /// Deciding what runs next.
        Schedule = 4 "schedule",
        /// Turning logits into tokens.
        Sample = 5 "sample",
        /// Making two processors agree.
        Sync = 6 "sync",
        /// Anything else.
        Other = 7 "other",
    }
}

coded! {
    /// How a wait was spent.
    WaitMode {
        /// Told by a callback or an event.
        Callback = 0 "callback",
        /// Blocked in the operating system.
        Blocking = 1 "blocking",
        /// Polled all the time.
        Spin = 2 "spin",
        /// Slept until shortly before the predicted end, then polled.
        SleepThenSpin = 3 "sleep-then-spin",
    }
}

coded! {
    /// Why a sender held a message back.
    StallCause {
        /// No permit was free: enough is in flight.
        BackPressure = 1 "back-pressure",
        /// No memory slot or KV page was free.
        SlotPool = 2 "slot pool empty",
        /// The policy waits for all of a group before it goes on.
        PolicyBarrier = 3 "policy barrier",
    }
}

coded! {
    /// Where a request is on its way.
    Milestone {
        /// Handed to the engine; the value is the number of prompt tokens.
        Submitted = 0 "submitted",
        /// Left the queue.
        Admitted = 1 "admitted",
        /// Got a token (or the scores of a chunk); the value is how many.
        Token = 2 "token",
        /// Ended with all it asked for.
        Finished = 3 "finished",
        /// Nobody wanted the rest.
        Cancelled = 4 "cancelled",
        /// Ended by an error.
        Failed = 5 "failed",
    }
}

/// What a span is about. Everything may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tags {
    /// Chunk that it computes.
    pub chunk: Option<u64>,
    /// Request that it belongs to; none if to several.
    pub request: Option<u64>,
    /// Stage of the chunk's route, up to 65 534.
    pub stage: Option<u16>,
    /// Layer of the model, up to 65 534.
    pub layer: Option<u16>,
    /// Rows (tokens) computed.
    pub rows: u32,
    /// Epoch; work of an earlier one than the latest is thrown away.
    pub epoch: u32,
    /// Bytes read and written.
    pub bytes: u64,
    /// Floating-point operations, a multiply-add being two.
    pub flops: u64,
}

/// Name, kind and subject of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanInfo {
    /// Name of the op, stage or span.
    pub name: NameId,
    /// Kind of work.
    pub activity: Activity,
    /// Span that contains it.
    pub parent: Option<SpanId>,
    /// What it is about.
    pub tags: Tags,
}

/// A predicted wait for another lane, as it turned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaitInfo {
    /// Which kind of wait.
    pub name: NameId,
    /// When it began.
    pub since: Nanos,
    /// Span that was waited for.
    pub target: Option<SpanId>,
    /// How.
    pub mode: WaitMode,
    /// Predicted time from the beginning to the end of what is waited for, in ns; 0 for none.
    pub predicted: u64,
    /// Sleeping was to end this much before the predicted end, in ns.
    pub margin: u64,
    /// Slept or blocked, in ns, from the beginning on.
    pub slept: u64,
    /// Polled, in ns, after that.
    pub spun: u64,
}

/// A message leaves its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sending {
    /// The message.
    pub message: MessageId,
    /// Span that sent it; none if it comes from outside.
    pub span: Option<SpanId>,
    /// What kind of message.
    pub name: NameId,
    /// Payload in bytes that is copied or moved; 0 if only ownership moves.
    pub bytes: u64,
    /// It was ready at that time but held back, and why.
    pub stall: Option<(StallCause, Nanos)>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// The span's work is known, and waits to be handed to its lane.
    Queued(SpanId),
    /// The span's work was handed to the lane's queue.
    Submitted(SpanId),
    /// A span began.
    Started(SpanId, SpanInfo),
    /// A span ended.
    Finished(SpanId),
    /// A span ended, and began at that time: one event for work that is known only afterwards.
    Ran(SpanId, SpanInfo, Nanos),
    /// A message left.
    Sent(Sending),
    /// A message was taken out of its mailbox, and that span acts on it.
    Received(MessageId, Option<SpanId>),
    /// The lane's thread, which slept since then for want of messages, runs again.
    Woke(Nanos),
    /// A wait for another lane ended.
    Waited(WaitInfo),
    /// Memory of that name and size was given back.
    Freed(NameId, u64),
    /// A counter has a new value: queue depth, bytes in use.
    Counter(NameId, i64),
    /// A request reached a milestone. The last number is the milestone's value.
    Request(u64, Milestone, u64),
}

/// Something that happened on a lane at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// When.
    pub at: Nanos,
    /// Where.
    pub lane: LaneId,
    /// What.
    pub kind: EventKind,
}
