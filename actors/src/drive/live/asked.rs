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

    /// Waits until the graphs are ready that chunks have lacked, and that can be prepared. Returns whether any were made meanwhile.
    ///
    /// # Errors
    /// As [`stats`](Live::stats).
    pub async fn graphs_made(&self) -> Result<bool, RunError> {
        let mut stats = self.stats().await?;
        let ready = stats.graphs.ready;
        while stats.graphs.is_pending {
            // Each graph that is made, and each rest before one, is a message.
            let answer = self.asked.ask();
            if self.ending.closed.load(Ordering::SeqCst) {
                self.asked.clear();
            }
            stats = answer.recv_async().await.map_err(|_| self.ending.why())?;
        }
        Ok(stats.graphs.ready > ready)
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
