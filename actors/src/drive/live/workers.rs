//! The way to every worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Mailbox;
use crate::error::RunError;
use crate::message::Delivery;
use lapwing_plan::DeviceId;

/// What arrives at a worker.
pub(super) enum WorkerMessage {
    Run(Delivery),
    Nudge,
    Stop,
}

/// Messages that a worker's mailbox holds: each chunk in flight is in it at most once, a nudge, and
/// the end.
pub(super) fn capacity(permits: usize) -> usize {
    permits + 2
}

/// Mailboxes of the workers, by device.
#[derive(Clone)]
pub(super) struct Workers {
    mailboxes: Vec<Mailbox<WorkerMessage>>,
    /// A nudge is in the mailbox; one is enough for any number of reasons.
    nudged: Arc<[AtomicBool]>,
}

impl Workers {
    pub(super) fn new(mailboxes: Vec<Mailbox<WorkerMessage>>) -> Workers {
        let nudged = mailboxes.iter().map(|_| AtomicBool::new(false)).collect();
        Workers { mailboxes, nudged }
    }

    /// Hands over a chunk, or a part of one. For a worker that has died it is dropped: its own
    /// thread says why, which ends the engine.
    pub(super) fn send(&self, device: DeviceId, delivery: Delivery) -> Result<(), RunError> {
        match self.mailboxes[device.0].send(WorkerMessage::Run(delivery)) {
            Err(RunError::ActorDied { .. }) => Ok(()),
            other => other,
        }
    }

    /// Lets a worker look again at what waits there.
    pub(super) fn nudge(&self, device: DeviceId) {
        if !self.nudged[device.0].swap(true, Ordering::AcqRel) {
            self.mailboxes[device.0].nudge(WorkerMessage::Nudge);
        }
    }

    /// The worker has taken the nudge out, and will look.
    pub(super) fn nudged(&self, device: DeviceId) {
        self.nudged[device.0].store(false, Ordering::Release);
    }

    /// Tells every worker to end.
    pub(super) fn stop(&self) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.nudge(WorkerMessage::Stop));
    }
}
