//! Bounded mailboxes between actors, and the channel that a caller reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::RunError;
use crate::message::{Posted, Sink, StreamEvent};

/// Sending end of an actor's mailbox. Sending never blocks: credits keep it from filling.
#[derive(Debug)]
pub struct Mailbox<T> {
    actor: Arc<str>,
    sender: flume::Sender<T>,
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Mailbox<T> {
        Mailbox { actor: Arc::clone(&self.actor), sender: self.sender.clone() }
    }
}

impl<T> Mailbox<T> {
    /// A mailbox for `capacity` messages, and the end that the actor reads.
    pub fn new(actor: &str, capacity: usize) -> (Mailbox<T>, flume::Receiver<T>) {
        let (sender, receiver) = flume::bounded(capacity);
        (Mailbox { actor: actor.into(), sender }, receiver)
    }

    /// Hands a message over.
    ///
    /// # Errors
    /// [`RunError::MailboxFull`], which the credits forbid, or [`RunError::ActorDied`].
    pub fn send(&self, message: T) -> Result<(), RunError> {
        self.sender.try_send(message).map_err(|error| match error {
            flume::TrySendError::Full(_) => RunError::MailboxFull { actor: self.actor.to_string() },
            flume::TrySendError::Disconnected(_) => RunError::ActorDied {
                actor: self.actor.to_string(),
                reason: "it has ended".to_owned(),
            },
        })
    }

    /// Hands a message over unless the mailbox is full, when something else is about to wake
    /// the actor anyway.
    pub fn nudge(&self, message: T) {
        let _ = self.sender.try_send(message);
    }
}

/// A caller's channel as a [`Sink`].
#[derive(Debug)]
pub struct ChannelSink {
    sender: flume::Sender<Posted<StreamEvent>>,
    overflowed: AtomicBool,
}

impl ChannelSink {
    /// A channel for at most `capacity` events.
    pub fn new(capacity: usize) -> (Arc<ChannelSink>, flume::Receiver<Posted<StreamEvent>>) {
        let (sender, receiver) = flume::bounded(capacity);
        (Arc::new(ChannelSink { sender, overflowed: AtomicBool::new(false) }), receiver)
    }
}

impl Sink for ChannelSink {
    fn send(&self, event: Posted<StreamEvent>) {
        if let Err(flume::TrySendError::Full(_)) = self.sender.try_send(event) {
            // A gap would be worse than an end: the stream counts as cancelled, and its reader
            // sees it end without a last event.
            self.overflowed.store(true, Ordering::Release);
        }
    }

    fn is_closed(&self) -> bool {
        self.overflowed.load(Ordering::Acquire) || self.sender.is_disconnected()
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
        sink.send(Posted::unrecorded(StreamEvent::Scores(vec![])));
        sink.send(Posted::unrecorded(StreamEvent::Scores(vec![])));
        assert!(sink.is_closed());
        drop(receiver);
        let (sink, receiver) = ChannelSink::new(1);
        drop(receiver);
        assert!(sink.is_closed());
    }
}
