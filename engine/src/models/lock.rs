//! Ensures one fetch of a model at a time, across processes.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::FetchError;
use super::progress::{FetchEvent, Progress};

/// Interval at which a waiting fetch tries the lock.
const RETRY: Duration = Duration::from_millis(100);

/// The right to write one model. The operating system releases it when its process ends in any way,
/// so stale locks cannot occur. The lock file itself is kept: removing it would let two processes
/// lock two files of the same name.
#[derive(Debug)]
pub(super) struct FetchLock {
    _file: File,
}

impl FetchLock {
    /// Takes the lock if it is free.
    pub(super) fn try_take(path: &Path) -> Result<Option<Self>, FetchError> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(FetchError::io("open the lock file", path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(FetchError::io("lock", path)(source)),
        }
    }

    /// Takes the lock, waiting for its holder if necessary; reports the wait once.
    pub(super) async fn take(
        path: PathBuf,
        name: &str,
        progress: &mut dyn Progress,
    ) -> Result<Self, FetchError> {
        let mut reported = false;
        loop {
            if let Some(lock) = Self::try_take(&path)? {
                return Ok(lock);
            }
            if !reported {
                reported = true;
                progress.on_event(FetchEvent::Waiting { name: name.to_owned() });
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}
