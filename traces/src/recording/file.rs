//! Saves recordings to files and loads them.

use std::fs;
use std::path::Path;

use crate::whole_file;

use super::{Recording, RecordingError};

impl Recording {
    /// Writes the recording to a file. An existing file is replaced atomically: it is never seen
    /// half written, and stays unchanged if writing fails. A device or pipe is written in place.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), RecordingError> {
        let path = path.as_ref();
        whole_file::write(path, &self.to_bytes())
            .map_err(|source| RecordingError::Write { path: path.to_owned(), source })
    }

    /// Reads a file written by [`save`](Recording::save).
    pub fn load(path: impl AsRef<Path>) -> Result<Recording, RecordingError> {
        let path = path.as_ref();
        let bytes = fs::read(path)
            .map_err(|source| RecordingError::Read { path: path.to_owned(), source })?;
        Recording::from_bytes(&bytes).map_err(|source| RecordingError::File {
            path: path.to_owned(),
            source: Box::new(source),
        })
    }
}
