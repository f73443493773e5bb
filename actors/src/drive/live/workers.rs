//! Mailboxes of all workers, and of preparation lanes beside them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lapwing_kernels::device::Notify;

use super::prepare::Lanes;
use crate::drive::mailbox::Mailbox;
use crate::error::RunError;
use crate::message::{Delivery, Traced};
use lapwing_plan::DeviceId;

/// A message to a worker.
pub(super) enum WorkerMessage {
    Run(Traced<Delivery>),
    /// A waiting chunk may be ready now.
    Nudge,
    /// The device has completed a run.
    Done,
    Stop,
}

/// Capacity of a worker's mailbox, in messages: each chunk in flight at most once, a nudge, a
/// completion, and a stop.
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

    /// Sends a chunk, or a part of one. A message to a dead worker is dropped, because the worker's own
    /// thread reports the death, which ends the engine.
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

    /// Makes a worker check its waiting chunks again.
    pub(super) fn nudge(&self, device: DeviceId) {
        if !self.nudged[device.0].swap(true, Ordering::AcqRel) {
            self.mailboxes[device.0].nudge(WorkerMessage::Nudge);
        }
    }

    /// Records that the worker has taken the nudge out of its mailbox.
    pub(super) fn nudged(&self, device: DeviceId) {
        self.nudged[device.0].store(false, Ordering::Release);
    }

    /// The callback of a device for a completed run.
    pub(super) fn notify(&self, device: DeviceId) -> Notify {
        let (done, mailbox) = (Arc::clone(&self.done), self.mailboxes[device.0].clone());
        Arc::new(move || {
            if !done[device.0].swap(true, Ordering::AcqRel) {
                mailbox.nudge(WorkerMessage::Done);
            }
        })
    }

    /// Records that the worker has taken the completion out of its mailbox.
    pub(super) fn done(&self, device: DeviceId) {
        self.done[device.0].store(false, Ordering::Release);
    }

    /// Stops every worker.
    pub(super) fn stop(&self) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.nudge(WorkerMessage::Stop));
    }
}

/// The mailboxes of all workers and preparation lanes.
#[derive(Clone)]
pub(super) struct LiveActors {
    pub(super) workers: Workers,
    pub(super) lanes: Lanes,
}

impl LiveActors {
    /// Stops every worker and preparation lane.
    pub(super) fn stop(&self) {
        self.lanes.stop();
        self.workers.stop();
    }
}
