//! Bounded mailboxes between actors, and the channel that a caller reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lapwing_kernels::completion::Flag;
use lapwing_traces::Nanos;
use lapwing_traces::event::WaitMode;

use super::wait::{WaitFor, WaitKey, WaitRecord, Waiter};
use crate::error::RunError;
use crate::message::{Sink, StreamEvent, Traced};

/// Sending end of an actor's mailbox. Sending never blocks: permits bound the number of messages, so
/// the mailbox never fills.
#[derive(Debug)]
pub struct Mailbox<T> {
    actor: Arc<str>,
    sender: flume::Sender<T>,
    wake: WakeFlag,
}

/// Sets the receiver's flag when it is dropped. It is dropped after the sender, so the receiver wakes
/// and sees that the sender is gone.
#[derive(Clone, Debug)]
struct WakeFlag(Arc<Flag>);

impl Drop for WakeFlag {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Mailbox<T> {
        let Mailbox { actor, sender, wake } = self;
        Mailbox { actor: Arc::clone(actor), sender: sender.clone(), wake: wake.clone() }
    }
}

impl<T> Mailbox<T> {
    /// A mailbox for `capacity` messages: its sending and its receiving end.
    pub fn new(actor: &str, capacity: usize) -> (Mailbox<T>, Inbox<T>) {
        let (sender, receiver) = flume::bounded(capacity);
        let flag = Arc::new(Flag::new());
        let wake = WakeFlag(Arc::clone(&flag));
        (Mailbox { actor: actor.into(), sender, wake }, Inbox { receiver, flag })
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`RunError::MailboxFull`], which the permits rule out, or [`RunError::ActorDied`].
    pub fn send(&self, message: T) -> Result<(), RunError> {
        self.sender.try_send(message).map_err(|error| match error {
            flume::TrySendError::Full(_) => RunError::MailboxFull { actor: self.actor.to_string() },
            flume::TrySendError::Disconnected(_) => RunError::ActorDied {
                actor: self.actor.to_string(),
                reason: "its mailbox is closed".to_owned(),
            },
        })?;
        self.wake.0.set();
        Ok(())
    }

    /// Whether there is no message in it.
    pub fn is_empty(&self) -> bool {
        self.sender.is_empty()
    }

    /// Sends a message unless the mailbox is full: then an earlier message wakes the actor anyway.
    pub fn nudge(&self, message: T) {
        let _ = self.sender.try_send(message);
        self.wake.0.set();
    }
}

/// Receiving end of an actor's mailbox, on which the actor waits.
#[derive(Debug)]
pub struct Inbox<T> {
    receiver: flume::Receiver<T>,
    flag: Arc<Flag>,
}

/// Every sender of a mailbox is gone, and it is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("every sender of this mailbox is gone")]
pub struct Closed;

impl<T> Inbox<T> {
    /// The next message if one has arrived.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn try_recv(&self) -> Result<Option<T>, Closed> {
        match self.receiver.try_recv() {
            Ok(message) => Ok(Some(message)),
            Err(flume::TryRecvError::Empty) => Ok(None),
            Err(flume::TryRecvError::Disconnected) => Err(Closed),
        }
    }

    /// The next message, with a record of the wait unless it had already arrived. Only one thread may
    /// wait on a mailbox.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn recv(
        &self,
        waiter: &mut Waiter,
        key: WaitKey,
    ) -> Result<(T, Option<WaitRecord>), Closed> {
        if waiter.mode() != WaitMode::Blocking {
            let what = WaitFor { flag: &self.flag, key };
            let (message, record) = waiter.wait(what, || self.try_recv().transpose());
            return Ok((message?, record));
        }
        if let Some(message) = self.try_recv()? {
            return Ok((message, None));
        }
        let since = waiter.now();
        let message = self.receiver.recv().map_err(|_| Closed)?;
        Ok((message, Some(waiter.waited(key, since))))
    }

    /// The next message if one arrives before `at`.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn recv_until(&self, waiter: &mut Waiter, at: Nanos) -> Result<Option<T>, Closed> {
        waiter.wait_until(&self.flag, at, || self.try_recv().transpose()).transpose()
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.receiver.len()
    }

    /// Whether there is no message in it.
    pub fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }

    /// A second handle to the messages, which can drop them after the actor has ended.
    pub fn drain_handle(&self) -> DrainHandle<T> {
        DrainHandle { receiver: self.receiver.clone() }
    }
}

/// Drops the messages that an actor has left in its mailbox.
#[derive(Debug)]
pub struct DrainHandle<T> {
    receiver: flume::Receiver<T>,
}

impl<T> DrainHandle<T> {
    /// Drops all messages.
    pub fn clear(&self) {
        self.receiver.drain();
    }
}

/// A caller's channel as a [`Sink`].
#[derive(Debug)]
pub struct ChannelSink {
    sender: flume::Sender<Traced<StreamEvent>>,
    overflowed: AtomicBool,
    wants_prompt_progress: bool,
}

impl ChannelSink {
    /// A channel for at most `capacity` events.
    pub fn new(capacity: usize) -> (Arc<ChannelSink>, flume::Receiver<Traced<StreamEvent>>) {
        ChannelSink::of(capacity, false)
    }

    /// As [`new`](ChannelSink::new), with events of the progress of a prompt of so many tokens beside the others. Each of
    /// them reports more tokens than the one before it, so that they fit.
    pub fn with_prompt_progress(
        capacity: usize,
        prompt_tokens: usize,
    ) -> (Arc<ChannelSink>, flume::Receiver<Traced<StreamEvent>>) {
        ChannelSink::of(capacity + prompt_tokens + 1, true)
    }

    fn of(
        capacity: usize,
        wants_prompt_progress: bool,
    ) -> (Arc<ChannelSink>, flume::Receiver<Traced<StreamEvent>>) {
        let (sender, receiver) = flume::bounded(capacity);
        let overflowed = AtomicBool::new(false);
        (Arc::new(ChannelSink { sender, overflowed, wants_prompt_progress }), receiver)
    }
}

impl Sink for ChannelSink {
    fn send(&self, event: Traced<StreamEvent>) {
        if let Err(flume::TrySendError::Full(_)) = self.sender.try_send(event) {
            // A stream with a missing event would be wrong. It counts as cancelled instead, and its
            // reader sees it end without a final event.
            self.overflowed.store(true, Ordering::Release);
        }
    }

    fn is_closed(&self) -> bool {
        self.overflowed.load(Ordering::Acquire) || self.sender.is_disconnected()
    }

    fn wants_prompt_progress(&self) -> bool {
        self.wants_prompt_progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_mailbox_is_named_and_does_not_block() {
        let (mailbox, receiver) = Mailbox::new("cpu", 1);
        assert_eq!(mailbox.send(1), Ok(()));
        assert_eq!(mailbox.send(2), Err(RunError::MailboxFull { actor: "cpu".to_owned() }));
        drop(receiver);
        assert!(matches!(mailbox.send(3), Err(RunError::ActorDied { .. })));
    }

    #[test]
    fn a_sink_is_closed_when_its_reader_is_gone_or_would_miss_an_event() {
        let (sink, receiver) = ChannelSink::new(1);
        assert!(!sink.is_closed());
        sink.send(Traced::untraced(StreamEvent::Scores(vec![])));
        sink.send(Traced::untraced(StreamEvent::Scores(vec![])));
        assert!(sink.is_closed());
        drop(receiver);
        let (sink, receiver) = ChannelSink::new(1);
        drop(receiver);
        assert!(sink.is_closed());
    }
}
