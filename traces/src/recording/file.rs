//! A recording in a file.

use std::fs;
use std::path::Path;

use crate::whole_file;

use super::{Recording, RecordingError};

impl Recording {
    /// Writes the recording to a file. One that is there is replaced at once and as a whole: it
    /// is never seen half written, and stays as it was when writing fails. A device or a pipe is
    /// written into.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), RecordingError> {
        let path = path.as_ref();
        whole_file::write(path, &self.to_bytes())
            .map_err(|source| RecordingError::Write { path: path.to_owned(), source })
    }

    /// Reads a file that [`save`](Recording::save) wrote.
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
