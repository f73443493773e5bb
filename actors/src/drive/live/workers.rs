//! The way to every worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lapwing_kernels::device::Notify;

use crate::drive::mailbox::Mailbox;
use crate::error::RunError;
use crate::message::{Delivery, Traced};
use lapwing_plan::DeviceId;

/// What arrives at a worker.
pub(super) enum WorkerMessage {
    Run(Traced<Delivery>),
    /// What waits in the worker may be ready now.
    Nudge,
    /// The device has completed a run.
    Done,
    Stop,
}

/// Messages that a worker's mailbox holds: each chunk in flight at most once, a nudge, a completion,
/// and the end.
pub(super) fn capacity(permits: usize) -> usize {
    permits + 3
}

/// Mailboxes of the workers, by device.
#[derive(Clone)]
pub(super) struct Workers {
    mailboxes: Vec<Mailbox<WorkerMessage>>,
    /// A nudge is in the mailbox; one is enough for any number of reasons.
    nudged: Arc<[AtomicBool]>,
    /// A completion is in the mailbox; one is enough for any number of runs.
    done: Arc<[AtomicBool]>,
}

impl Workers {
    pub(super) fn new(mailboxes: Vec<Mailbox<WorkerMessage>>) -> Workers {
        let flags = || mailboxes.iter().map(|_| AtomicBool::new(false)).collect();
        let (nudged, done) = (flags(), flags());
        Workers { mailboxes, nudged, done }
    }

    /// Hands over a chunk, or a part of one. For a worker that has died it is dropped: its own
    /// thread says why, which ends the engine.
    pub(super) fn send(
        &self,
        device: DeviceId,
        delivery: Traced<Delivery>,
    ) -> Result<(), RunError> {
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

    /// What a device calls when a run has completed.
    pub(super) fn notify(&self, device: DeviceId) -> Notify {
        let (done, mailbox) = (Arc::clone(&self.done), self.mailboxes[device.0].clone());
        Arc::new(move || {
            if !done[device.0].swap(true, Ordering::AcqRel) {
                mailbox.nudge(WorkerMessage::Done);
            }
        })
    }

    /// The worker has taken the completion out, and will poll its device.
    pub(super) fn done(&self, device: DeviceId) {
        self.done[device.0].store(false, Ordering::Release);
    }

    /// Tells every worker to end.
    pub(super) fn stop(&self) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.nudge(WorkerMessage::Stop));
    }
}
