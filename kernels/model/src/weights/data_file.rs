//! An open file that is read by position.
//!
//! Weight files are never mapped: if another process truncates a mapped file, the system kills the process that touches a page
//! behind its end, while a read returns an error. Only a file with a lease (`leased_file`) may be mapped.

use std::fs::File;
use std::io;
use std::path::Path;

use super::stamp::Stamp;

/// An open regular file, and its stamp at that time.
#[derive(Debug)]
pub struct DataFile {
    pub(super) file: File,
    pub(super) stamp: Stamp,
}

/// Why bytes of a file that was opened cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadFault {
    /// The file is shorter than when it was opened.
    #[error(
        "the file ends at byte {now}, but had {then} bytes when it was opened: another program has \
         truncated or replaced it; restore it, then start again"
    )]
    Truncated {
        /// Bytes of the file now.
        now: u64,
        /// Bytes of the file when it was opened.
        then: u64,
    },
    /// The file has been written to since it was opened.
    #[error("another program has changed the file since it was opened; start again")]
    Changed,
    /// The system cannot read it.
    #[error("{0}; check the disk or the network that it is on, then start again")]
    System(#[from] io::Error),
}

impl DataFile {
    /// Opens a regular file.
    pub fn open(path: &Path) -> io::Result<DataFile> {
        let other = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        // Checked before opening as well, because opening a pipe blocks.
        if !std::fs::metadata(path)?.is_file() {
            return Err(other());
        }
        let file = File::open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(other());
        }
        Ok(DataFile { file, stamp: Stamp::of(&meta) })
    }

    /// Its size in bytes when it was opened.
    pub fn bytes_total(&self) -> u64 {
        self.stamp.bytes()
    }

    /// Its stamp when it was opened.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Fills `to` with the bytes from byte `at` on.
    ///
    /// # Errors
    /// [`ReadFault`] when the file has become shorter, or the system cannot read it.
    pub fn read(&self, at: u64, to: &mut [u8]) -> Result<(), ReadFault> {
        let mut done = 0;
        while done < to.len() {
            match read_at(&self.file, &mut to[done..], at + done as u64) {
                Ok(0) => {
                    let now = self.file.metadata()?.len().min(at + done as u64);
                    return Err(ReadFault::Truncated { now, then: self.bytes_total() });
                }
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Checks that the open file still has the size and modification time that it was opened with.
    /// Replacing the path by another file does not change the open one.
    ///
    /// # Errors
    /// [`ReadFault`] when it has changed.
    pub(super) fn check_unchanged(&self) -> Result<(), ReadFault> {
        let now = Stamp::of(&self.file.metadata()?);
        if now.bytes() < self.bytes_total() {
            return Err(ReadFault::Truncated { now: now.bytes(), then: self.bytes_total() });
        }
        match now.has_contents_of(&self.stamp) {
            true => Ok(()),
            false => Err(ReadFault::Changed),
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, to: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, to, at)
}

#[cfg(windows)]
fn read_at(file: &File, to: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, to, at)
}
