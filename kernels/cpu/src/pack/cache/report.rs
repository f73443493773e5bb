//! Where packed weights are kept, and the outcome.

use super::error::{CacheReadError, CacheWriteError};
use std::path::PathBuf;

/// Where packed weights are kept.
///
/// The file is only ever replaced as a whole, so any number of processes may use and replace it at
/// the same time. Its checksums detect accidental
/// damage, not tampering: a user with write access to the folder can replace the weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackCache {
    /// The file; its folder is created if it is missing.
    pub path: PathBuf,
    /// Size limit in bytes.
    pub bytes_max: u64,
}

/// Outcome of using a [`PackCache`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct PackReport {
    /// Whether the weights were read from the file; otherwise they were packed.
    pub loaded: bool,
    /// Why an existing file was not used.
    pub read_error: Option<CacheReadError>,
    /// Why packed weights were not kept; `None` if they were.
    pub write_error: Option<CacheWriteError>,
}

impl PackCache {
    /// Whether this is the name of a file that is being written, or was abandoned by a process that
    /// died.
    pub fn is_part(name: &str) -> bool {
        name.starts_with(PART_PREFIX) && name.ends_with(PART_SUFFIX)
    }
}

/// Prefix of the names of files that are being written.
pub(super) const PART_PREFIX: &str = ".lapwing-";
/// Their suffix.
pub(super) const PART_SUFFIX: &str = ".part";
