//! The envelope of messages: a trace context accompanies each message. State machines pass it on
//! unread; only `drive` reads it.

use std::ops::{Deref, DerefMut};

use lapwing_traces::Nanos;
use lapwing_traces::event::{MessageId, SpanId};

/// The recording's data of a message. All fields are empty while recording is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// Whether the request, or one of a chunk's requests, is marked for recording.
    pub(crate) requested: bool,
    /// Time at which the chunk left the scheduler.
    pub(crate) dispatched: Option<Nanos>,
    /// Number of the message, and the time at which it was sent.
    pub(crate) sent: Option<(MessageId, Nanos)>,
    /// Span of the present stage.
    pub(crate) span: Option<SpanId>,
    /// Whether the present stage has run and used its span.
    pub(crate) ran: bool,
}

impl TraceContext {
    /// The context of a request; `requested` marks it for recording.
    pub fn of_request(requested: bool) -> TraceContext {
        TraceContext { requested, ..TraceContext::default() }
    }

    /// The context of another message of the same request.
    pub fn same_request(self) -> TraceContext {
        TraceContext::of_request(self.requested)
    }

    /// The context of a message that serves several requests.
    pub fn of_all(contexts: impl IntoIterator<Item = TraceContext>) -> TraceContext {
        TraceContext::of_request(contexts.into_iter().any(|context| context.requested))
    }
}

/// A message with its trace context.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traced<T> {
    /// The message.
    pub message: T,
    /// Its trace context.
    pub context: TraceContext,
}

impl<T> Traced<T> {
    /// A message with its context.
    pub fn new(message: T, context: TraceContext) -> Traced<T> {
        Traced { message, context }
    }

    /// A message that is not recorded.
    pub fn untraced(message: T) -> Traced<T> {
        Traced { message, context: TraceContext::default() }
    }

    /// Another message with the same context.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Traced<U> {
        Traced { message: f(self.message), context: self.context }
    }
}

impl<T> From<T> for Traced<T> {
    fn from(message: T) -> Traced<T> {
        Traced::untraced(message)
    }
}

impl<T> Deref for Traced<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.message
    }
}

impl<T> DerefMut for Traced<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.message
    }
}
