//! Sources of models: one trait, one file for each kind of source.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::error::FetchError;
use super::lock::FetchLock;
use super::progress::Progress;

/// A source's statement about a file, for comparison with the received file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claim {
    /// Size in bytes.
    pub bytes: Option<u64>,
    /// SHA-256 in lower-case hex.
    pub sha256: Option<String>,
}

/// A place from which a model file can be fetched.
#[async_trait]
pub trait Source: Send + Sync {
    /// Description of the source, for the record next to the model.
    fn describe(&self) -> String;

    /// Facts known before the transfer. A cached file that contradicts it is fetched again.
    fn claim(&self) -> Claim;

    /// Transfers the whole file to [`Site::file`] and returns what the source states about it.
    ///
    /// May continue from leftovers of an earlier attempt in the site's folder. The future may be
    /// dropped at any await; work on other threads must then end soon, and must hold a clone of the
    /// site until it has ended.
    ///
    /// # Errors
    /// Any [`FetchError`]; the site's folder is kept for the next attempt unless the error means that
    /// its content is wrong.
    async fn deliver(&self, site: &Site, progress: &mut dyn Progress) -> Result<Claim, FetchError>;
}

/// The folder in which one model is assembled. Holding it excludes every other fetch of that model,
/// also by other processes.
#[derive(Debug, Clone)]
pub struct Site {
    name: String,
    dir: PathBuf,
    _lock: Arc<FetchLock>,
}

impl Site {
    pub(super) fn new(name: &str, dir: PathBuf, lock: FetchLock) -> Self {
        Self { name: name.to_owned(), dir, _lock: Arc::new(lock) }
    }

    /// The place of a part of the model, in a folder of its own.
    pub(super) fn part(&self, number: usize, name: String) -> Self {
        Self { name, dir: self.dir.join(format!("{number:05}")), _lock: Arc::clone(&self._lock) }
    }

    /// The model's name in the cache, or that of a part of it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder, on the file system of the cache, so that a rename out of it is atomic.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Final path of the complete model file.
    pub fn file(&self) -> PathBuf {
        self.dir.join("model")
    }
}
