//! How a live engine ends.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use crate::error::RunError;

/// The engine's end, shared by the callers' side and the scheduler's side.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Why the engine has ended or is about to end.
    pub(super) cause: OnceLock<RunError>,
    /// The scheduler reads no more messages.
    pub(super) closed: AtomicBool,
    /// A wake is in the mailbox; one is enough for any number of dropped streams and of callers that ask.
    pub(super) waking: AtomicBool,
    /// A draining shutdown has been sent; one is enough.
    pub(super) draining: AtomicBool,
    pub(super) stopping: Arc<AtomicBool>,
}

impl Ending {
    pub(super) fn why(&self) -> RunError {
        self.cause.get().cloned().unwrap_or(RunError::ActorDied {
            actor: "scheduler".to_owned(),
            reason: "the engine is over".to_owned(),
        })
    }
}
