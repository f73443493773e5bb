//! Callers that ask for the state of a live engine.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
        self.stats_once(When::Now).await
    }

    /// Waits until the graphs are ready that chunks have lacked, and that can be prepared. Returns whether any were made meanwhile.
    ///
    /// # Errors
    /// As [`stats`](Live::stats).
    pub async fn graphs_made(&self) -> Result<bool, RunError> {
        let before = self.stats().await?.graphs.ready;
        Ok(self.stats_once(When::GraphsAreMade).await?.graphs.ready > before)
    }

    async fn stats_once(&self, when: When) -> Result<EngineStats, RunError> {
        let answer = self.asked.ask(when);
        if self.ending.closed.load(Ordering::SeqCst) {
            self.asked.clear();
        } else if !self.ending.waking.swap(true, Ordering::AcqRel) {
            self.mailbox.nudge(self.caller.post(SchedulerMessage::Wake));
        }
        answer.recv_async().await.map_err(|_| self.ending.why())
    }
}

/// When one who asks is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Now,
    /// Once no graph is being prepared or will be.
    GraphsAreMade,
}

/// Those that have no answer yet.
#[derive(Debug, Default)]
pub(super) struct Asked(Mutex<Vec<(When, flume::Sender<EngineStats>)>>);

impl Asked {
    /// Asks. The answer comes when the scheduler has handled its next message, or a later one after which it is due; never if it has ended.
    pub(super) fn ask(&self, when: When) -> flume::Receiver<EngineStats> {
        let (sender, receiver) = flume::bounded(1);
        self.lock().push((when, sender));
        receiver
    }

    /// Answers all for whom it is due.
    pub(super) fn answer(&self, stats: impl FnOnce() -> EngineStats) {
        let mut asked = std::mem::take(&mut *self.lock());
        if asked.is_empty() {
            return;
        }
        let stats = stats();
        let later = asked.extract_if(.., |(when, sender)| {
            let is_later = *when == When::GraphsAreMade && stats.graphs.is_pending;
            is_later && !sender.is_disconnected()
        });
        self.lock().extend(later);
        for (_, sender) in asked {
            // Who asked may be gone.
            let _ = sender.send(stats.clone());
        }
    }

    /// Leaves all without an answer.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(When, flume::Sender<EngineStats>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
