//! The record file next to each cached model.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cache::Slot;
use super::error::FetchError;
use super::files;
use super::name::HubFile;
use super::name::parts::is_part;

/// The description of a cached model, stored as JSON in `NAME.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The model's cache name.
    pub(super) name: String,
    /// Its source.
    pub(super) source: String,
    /// Size of the model file, or of all parts together, in bytes.
    pub(super) bytes: u64,
    /// SHA-256 of the model file, computed when it was fetched, lower-case hex; of a model in parts, the
    /// SHA-256 of the text with that of each part on a line.
    pub(super) sha256: String,
    /// Whether the hashes were compared with those that the source states.
    pub(super) verified: bool,
    /// The parts of a model in several files, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<PartRecord>,
}

/// A file of a model in parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartRecord {
    /// Its name in the folder of parts.
    pub(super) file: String,
    /// Size in bytes.
    pub(super) bytes: u64,
    /// SHA-256, lower-case hex.
    pub(super) sha256: String,
}

/// A file of a cached model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordedFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl Record {
    /// Reads a record; `None` if it is missing or invalid.
    pub(super) fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// The recorded hash of a model's file, if the file has the recorded size.
    pub(super) fn sha256_of(model: &Path) -> Option<String> {
        let record = Self::read(&model.with_extension("json"))?;
        let bytes = fs::metadata(model).ok()?.len();
        super::digest::as_sha256(&record.sha256).filter(|_| bytes == record.bytes)
    }

    /// All files of the model, in order; `None` if the record is not one of a whole model.
    pub(super) fn files(&self, slot: &Slot) -> Option<Vec<RecordedFile>> {
        if self.parts.is_empty() {
            let is_lone_part = self.name.parse().is_ok_and(|name: HubFile| is_part(&name.file));
            let (path, sha256) = (slot.model.clone(), self.sha256.clone());
            return (!is_lone_part).then(|| vec![RecordedFile { path, bytes: self.bytes, sha256 }]);
        }
        let is_inside =
            |part: &PartRecord| HubFile::is_path(&part.file) && !part.file.contains('/');
        let file = |part: &PartRecord| RecordedFile {
            path: slot.parts.join(&part.file),
            bytes: part.bytes,
            sha256: part.sha256.clone(),
        };
        self.parts.iter().all(is_inside).then(|| self.parts.iter().map(file).collect())
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
