//! Callers that ask for the state of a live engine.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use super::Live;
use crate::error::RunError;
use crate::message::SchedulerMessage;
use crate::stats::EngineStats;

impl Live {
    /// What the engine has done and is doing.
    ///
    /// # Errors
    /// The cause of the engine's end, if it has ended.
    pub async fn stats(&self) -> Result<EngineStats, RunError> {
        let answer = self.asked.ask();
        if self.ending.closed.load(Ordering::SeqCst) {
            self.asked.clear();
        } else if !self.ending.waking.swap(true, Ordering::AcqRel) {
            self.mailbox.nudge(self.caller.post(SchedulerMessage::Wake));
        }
        answer.recv_async().await.map_err(|_| self.ending.why())
    }
}

/// Those that have no answer yet.
#[derive(Debug, Default)]
pub(super) struct Asked(Mutex<Vec<flume::Sender<EngineStats>>>);

impl Asked {
    /// Asks. The answer comes when the scheduler has handled its next message, or never if it has ended.
    pub(super) fn ask(&self) -> flume::Receiver<EngineStats> {
        let (sender, receiver) = flume::bounded(1);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        receiver
    }

    /// Answers all.
    pub(super) fn answer(&self, stats: impl FnOnce() -> EngineStats) {
        let asked = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if asked.is_empty() {
            return;
        }
        let stats = stats();
        for sender in asked {
            // Who asked may be gone.
            let _ = sender.send(stats.clone());
        }
    }

    /// Leaves all without an answer.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
