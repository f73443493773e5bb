//! Long work on the blocking pool, which ends soon after its caller drops the future.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::error::FetchError;
use super::progress::{Gauge, Progress};

/// Interval at which the progress of work on another thread is read.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// Shared with work on the blocking pool: its progress, and whether it is cancelled.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkState {
    stop: Arc<AtomicBool>,
    bytes: Arc<AtomicU64>,
}

impl WorkState {
    /// Counts bytes done.
    ///
    /// # Errors
    /// When the work is cancelled.
    pub(super) fn advance(&self, bytes: u64) -> std::io::Result<()> {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("the fetch was cancelled"));
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Cancels the work when the future that awaits it is dropped.
struct StopOnDrop(WorkState);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on the blocking pool of the caller's runtime.
pub(super) async fn run<T: Send + 'static>(
    work: impl FnOnce(&WorkState) -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    let state = WorkState::default();
    let guard = StopOnDrop(state.clone());
    let result = tokio::task::spawn_blocking(move || work(&state)).await;
    drop(guard);
    joined(result)
}

/// As [`run`], reporting the bytes that the work counts.
pub(super) async fn run_reporting<T: Send + 'static>(
    total: Option<u64>,
    progress: &mut dyn Progress,
    work: impl FnOnce(&WorkState) -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    let state = WorkState::default();
    let guard = StopOnDrop(state.clone());
    let task = tokio::task::spawn_blocking(move || work(&state));
    let mut gauge = Gauge::new(total);
    let result = polling(task, || gauge.reach(guard.0.bytes(), progress)).await;
    gauge.reach(guard.0.bytes(), progress);
    joined(result)
}

/// Awaits `future`, calling `look` every [`POLL`] until it is ready.
pub(super) async fn polling<F: Future>(future: F, mut look: impl FnMut()) -> F::Output {
    let mut future = std::pin::pin!(future);
    loop {
        if let Ok(output) = tokio::time::timeout(POLL, future.as_mut()).await {
            return output;
        }
        look();
    }
}

fn joined<T>(
    result: Result<Result<T, FetchError>, tokio::task::JoinError>,
) -> Result<T, FetchError> {
    result.unwrap_or_else(|error| Err(FetchError::WorkerDied { detail: error.to_string() }))
}
