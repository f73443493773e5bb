//! The record file next to each cached model.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::FetchError;
use super::files;

/// The description of a cached model, stored as JSON in `NAME.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The model's cache name.
    pub(super) name: String,
    /// Its source.
    pub(super) source: String,
    /// Size of the model file in bytes.
    pub(super) bytes: u64,
    /// SHA-256 of the model file, computed when it was fetched, lower-case hex.
    pub(super) sha256: String,
    /// Whether the hash was compared with one that the source states.
    pub(super) verified: bool,
}

impl Record {
    /// Reads a record; `None` if it is missing or invalid.
    pub(super) fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// The recorded hash of a model's file, if the file has the recorded size.
    #[cfg(feature = "serve")]
    pub(super) fn sha256_of(model: &Path) -> Option<String> {
        let record = Self::read(&model.with_extension("json"))?;
        let bytes = fs::metadata(model).ok()?.len();
        super::digest::as_sha256(&record.sha256).filter(|_| bytes == record.bytes)
    }

    /// Writes the record atomically.
    pub(super) fn write(&self, path: &Path) -> Result<(), FetchError> {
        let text = serde_json::to_vec_pretty(self)
            .map_err(std::io::Error::from)
            .map_err(FetchError::io("encode", path))?;
        let partial = path.with_extension("json.partial");
        files::create(&partial)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .map_err(FetchError::io("write", &partial))?;
        fs::rename(&partial, path).map_err(FetchError::io("rename", &partial))
    }
}
