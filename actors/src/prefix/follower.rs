//! The channel of events from a cache to a follower. The cache never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::block::CacheBatch;

/// Most batches in the channel. A follower that is further behind gets all blocks again.
const BATCHES_MAX: usize = 4096;

/// The cache's end of the channel.
#[derive(Debug)]
pub(super) struct Follower {
    batches: flume::Sender<CacheBatch>,
    is_behind: Arc<AtomicBool>,
}

/// The follower's end of the channel.
#[derive(Debug)]
pub(super) struct Batches {
    batches: flume::Receiver<CacheBatch>,
    is_behind: Arc<AtomicBool>,
}

/// Both ends. A new follower is behind.
pub(super) fn channel() -> (Follower, Batches) {
    let (sender, receiver) = flume::bounded(BATCHES_MAX);
    let is_behind = Arc::new(AtomicBool::new(true));
    let follower = Follower { batches: sender, is_behind: Arc::clone(&is_behind) };
    (follower, Batches { batches: receiver, is_behind })
}

impl Follower {
    /// Sends a batch, unless the other is behind or is now. Returns whether there is another.
    pub(super) fn tell(&self, batch: &CacheBatch) -> bool {
        if self.is_behind.load(Ordering::Acquire) {
            return !self.batches.is_disconnected();
        }
        match self.batches.try_send(Arc::clone(batch)) {
            Ok(()) => true,
            Err(flume::TrySendError::Full(_)) => {
                self.is_behind.store(true, Ordering::Release);
                true
            }
            Err(flume::TrySendError::Disconnected(_)) => false,
        }
    }
}

impl Batches {
    /// Whether batches are lost, so that all must be told again.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Acquire)
    }

    /// Has all told again.
    pub(super) fn fall_behind(&self) {
        self.is_behind.store(true, Ordering::Release);
    }

    /// Forgets what is on the way. No batch may be sent meanwhile.
    pub(super) fn catch_up(&self) {
        self.batches.drain();
        self.is_behind.store(false, Ordering::Release);
    }

    /// Whether the cache has ended, and all batches are taken.
    pub(super) fn have_ended(&self) -> bool {
        self.batches.is_disconnected() && (self.is_behind() || self.batches.is_empty())
    }

    /// The next batch; `None` if there is none.
    pub(super) fn try_next(&self) -> Option<CacheBatch> {
        self.batches.try_recv().ok()
    }

    /// The next batch; `None` if the cache has ended.
    pub(super) async fn next(&self) -> Option<CacheBatch> {
        self.batches.recv_async().await.ok()
    }

    /// As [`next`](Batches::next), on the calling thread.
    pub(super) fn next_blocking(&self) -> Option<CacheBatch> {
        self.batches.recv().ok()
    }
}
