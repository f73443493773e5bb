//! How a live engine ends.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use crate::error::RunError;

/// What the callers' side and the scheduler's side both have to know about the end.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Why the engine is over, or about to be.
    pub(super) cause: OnceLock<RunError>,
    /// The scheduler reads no more messages.
    pub(super) closed: AtomicBool,
    /// A wake is in the mailbox; one is enough for any number of dropped streams.
    pub(super) waking: AtomicBool,
    /// A shutdown of that kind has been sent; one is enough.
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
