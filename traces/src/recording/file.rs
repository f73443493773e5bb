//! A recording in a file.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Recording, RecordingError};

impl Recording {
    /// Writes the recording to a file. One that is there is replaced at once and as a whole: it
    /// is never seen half written, and stays as it was when writing fails.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), RecordingError> {
        let path = path.as_ref();
        write_whole(path, &self.to_bytes())
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

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (beside, file) = create_beside(path)?;
    let written = write_and_sync(file, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write_and_sync(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// A new file in the same folder, and so on the same disk.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    };
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut beside = OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}-{number}.tmp", std::process::id()));
        let beside = path.with_file_name(beside);
        match OpenOptions::new().write(true).create_new(true).open(&beside) {
            // Left behind by a process that had the same number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => return Ok((beside, file)),
        }
    }
}
