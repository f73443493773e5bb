//! The small file beside each cached model that says what it is.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::FetchError;

/// What is recorded about a cached model, as JSON in `NAME.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The model's cache name.
    pub(super) name: String,
    /// Where it came from.
    pub(super) source: String,
    /// Size of the model file in bytes.
    pub(super) bytes: u64,
    /// SHA-256 of the model file as computed when it was fetched, lower-case hex.
    pub(super) sha256: String,
    /// Whether that hash was compared with one that the source stated.
    pub(super) verified: bool,
}

impl Record {
    /// Reads a record; `None` if there is none or it cannot be understood.
    pub(super) fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Puts the record in place in one step.
    pub(super) fn write(&self, path: &Path) -> Result<(), FetchError> {
        let text = serde_json::to_vec_pretty(self)
            .map_err(std::io::Error::from)
            .map_err(FetchError::io("encode", path))?;
        let partial = path.with_extension("json.partial");
        File::create(&partial)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .map_err(FetchError::io("write", &partial))?;
        fs::rename(&partial, path).map_err(FetchError::io("rename", &partial))
    }
}
