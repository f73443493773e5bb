//! The latest batches of a model, which all readers read at their own pace.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::timeout;

/// Most bytes of batches.
const BYTES_MAX: usize = 64 << 20;

/// How long a reader waits for a new batch with all blocks.
const AGAIN: Duration = Duration::from_secs(2);

/// A batch that was published.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) number: u64,
    pub(super) payload: Arc<[u8]>,
}

/// The latest batches. A reader that is slower than they come finds that some are missing; others do not wait for it.
#[derive(Debug)]
pub(super) struct Ring {
    kept: Mutex<Kept>,
    batches_max: usize,
    /// Number of the next batch.
    end: watch::Sender<u64>,
    /// A reader needs batches that are gone.
    wanted: Notify,
}

#[derive(Debug)]
struct Kept {
    batches: VecDeque<Arc<[u8]>>,
    bytes: usize,
    /// Number of the next batch.
    end: u64,
    /// Number of the last batch with all blocks.
    whole: u64,
}

impl Kept {
    /// Number of the first batch.
    fn first(&self) -> u64 {
        self.end - self.batches.len() as u64
    }

    /// Where to begin so that nothing is missing after batch `from`; `None` if batches are gone.
    fn start(&self, from: u64) -> Option<u64> {
        let first = self.first();
        match from {
            _ if from >= first => Some(from),
            _ if self.whole >= first => Some(self.whole),
            _ => None,
        }
    }
}

impl Ring {
    /// No batches yet; the first one will have this number.
    pub(super) fn new(first: u64, batches_max: usize) -> Arc<Ring> {
        let kept = Kept { batches: VecDeque::new(), bytes: 0, end: first, whole: first };
        let (end, wanted) = (watch::Sender::new(first), Notify::new());
        Arc::new(Ring { kept: Mutex::new(kept), batches_max: batches_max.max(1), end, wanted })
    }

    /// Adds a batch. `is_whole`: it has all blocks of the cache.
    pub(super) fn push(&self, payload: Vec<u8>, is_whole: bool) {
        let mut kept = self.lock();
        kept.bytes += payload.len();
        if is_whole {
            kept.whole = kept.end;
        }
        kept.batches.push_back(payload.into());
        kept.end += 1;
        let is_full = |kept: &Kept| {
            kept.batches.len() > self.batches_max
                || (kept.bytes > BYTES_MAX && kept.batches.len() > 1)
        };
        while is_full(&kept) {
            let oldest = kept.batches.pop_front();
            kept.bytes -= oldest.map_or(0, |oldest| oldest.len());
        }
        let end = kept.end;
        drop(kept);
        self.end.send_replace(end);
    }

    /// The first batch with this number or a larger one.
    pub(super) fn next(&self, from: u64) -> Option<Batch> {
        let kept = self.lock();
        let number = from.max(kept.first());
        let at = usize::try_from(number - kept.first()).ok()?;
        kept.batches.get(at).map(|payload| Batch { number, payload: Arc::clone(payload) })
    }

    /// Tells of new batches.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.end.subscribe()
    }

    /// Number of the next batch.
    pub(super) fn end(&self) -> u64 {
        self.lock().end
    }

    /// Where a reader that has all batches before `from` goes on. If the next ones are no longer kept, this waits for a batch with
    /// all blocks; without one in time, the reader goes on at `from`, and misses some.
    pub(super) async fn start(&self, from: u64) -> u64 {
        let mut watch = self.watch();
        if let Some(start) = self.lock().start(from) {
            return start;
        }
        self.wanted.notify_one();
        let told =
            async { while self.lock().start(from).is_none() && watch.changed().await.is_ok() {} };
        let _ = timeout(AGAIN, told).await;
        self.lock().start(from).unwrap_or(from)
    }

    /// Returns when a reader waits for a batch with all blocks.
    pub(super) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
