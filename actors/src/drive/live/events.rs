//! The receiving end of a request.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::ending::Ending;
use crate::drive::mailbox::Mailbox;
use crate::drive::record::CallerTrace;
use crate::message::{SchedulerMessage, StreamEvent, Traced};

/// A request's events. Dropping it cancels the request.
pub struct Events {
    stream: Option<flume::r#async::RecvStream<'static, Traced<StreamEvent>>>,
    receiver: Option<flume::Receiver<Traced<StreamEvent>>>,
    mailbox: Mailbox<Traced<SchedulerMessage>>,
    ending: Arc<Ending>,
    caller: Arc<CallerTrace>,
    /// Whether its last event was taken.
    ended: bool,
}

impl Events {
    /// The events that arrive at `receiver`.
    pub(super) fn new(
        receiver: flume::Receiver<Traced<StreamEvent>>,
        mailbox: Mailbox<Traced<SchedulerMessage>>,
        ending: Arc<Ending>,
        caller: Arc<CallerTrace>,
    ) -> Events {
        let stream = Some(receiver.clone().into_stream());
        Events { stream, receiver: Some(receiver), mailbox, ending, caller, ended: false }
    }

    /// Polls for the next event. After the last one, and after the scheduler has died, it is a
    /// [`StreamEvent::Failed`] with the cause.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<StreamEvent> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(self.over()) };
        match Pin::new(stream).poll_next(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(event)) => Poll::Ready(self.take(event)),
            Poll::Ready(None) => Poll::Ready(self.over()),
        }
    }

    /// The next event.
    pub async fn next(&mut self) -> StreamEvent {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The next event, blocking the thread.
    pub fn next_blocking(&mut self) -> StreamEvent {
        let Some(event) = self.receiver.as_ref().and_then(|r| r.recv().ok()) else {
            return self.over();
        };
        self.take(event)
    }

    fn take(&mut self, event: Traced<StreamEvent>) -> StreamEvent {
        self.caller.received(&event);
        self.ended |= matches!(event.message, StreamEvent::Finished(_) | StreamEvent::Failed(_));
        event.message
    }

    fn over(&self) -> StreamEvent {
        StreamEvent::Failed(self.ending.why())
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("receiver", &self.receiver).finish_non_exhaustive()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if !self.ended {
            self.caller.close();
        }
        // Every receiver must be dropped before the scheduler checks for closed streams.
        self.stream = None;
        self.receiver = None;
        if !self.ending.waking.swap(true, Ordering::AcqRel) {
            self.mailbox.nudge(self.caller.post(SchedulerMessage::Wake));
        }
    }
}
