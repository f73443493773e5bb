//! The envelope of messages: what a recording knows of a message travels beside it. State machines
//! pass it on unread; only `drive` looks inside.

use std::ops::{Deref, DerefMut};

use lapwing_traces::Nanos;
use lapwing_traces::event::{MessageId, SpanId};

/// What a recording knows of a message. All empty while nothing is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// The request asks to be recorded, or one of a chunk's requests does.
    pub(crate) requested: bool,
    /// When the chunk left the scheduler.
    pub(crate) dispatched: Option<Nanos>,
    /// Number of the message, and when it left its sender.
    pub(crate) sent: Option<(MessageId, Nanos)>,
    /// Span of the present stage.
    pub(crate) span: Option<SpanId>,
    /// The present stage has run, so that its span is taken.
    pub(crate) ran: bool,
}

impl TraceContext {
    /// Of a request that asks to be recorded, or does not.
    pub fn of_request(requested: bool) -> TraceContext {
        TraceContext { requested, ..TraceContext::default() }
    }

    /// Of a message on behalf of the same request.
    pub fn same_request(self) -> TraceContext {
        TraceContext::of_request(self.requested)
    }

    /// Of a message on behalf of several requests.
    pub fn of_all(contexts: impl IntoIterator<Item = TraceContext>) -> TraceContext {
        TraceContext::of_request(contexts.into_iter().any(|context| context.requested))
    }
}

/// A message with what a recording knows of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traced<T> {
    /// The message.
    pub message: T,
    /// What a recording knows of it.
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
