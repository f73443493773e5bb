//! Where packed weights are kept, and what became of it.

use super::error::{CacheReadError, CacheWriteError};
use std::path::PathBuf;

/// Where packed weights are kept.
///
/// The file is replaced as a whole and never changed, so that any number of processes may use and
/// replace it at the same time. Nothing else may change it while it is mapped. Its checksums find
/// what was damaged by accident; who may write to the folder may write weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackCache {
    /// The file; its folder is made when it is missing.
    pub path: PathBuf,
    /// Most bytes that it may have.
    pub bytes_max: u64,
}

/// What became of a [`PackCache`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct PackReport {
    /// The weights were mapped from the file; else they were packed.
    pub mapped: bool,
    /// Why the file that was there was not used.
    pub read_error: Option<CacheReadError>,
    /// Why what was packed was not kept; none where it was, too.
    pub write_error: Option<CacheWriteError>,
}

impl PackCache {
    /// Whether a file of this name is one that is being written, or was when a process died.
    pub fn is_part(name: &str) -> bool {
        name.starts_with(PART_PREFIX) && name.ends_with(PART_SUFFIX)
    }
}

/// How the name of a file begins that is being written.
pub(super) const PART_PREFIX: &str = ".lapwing-";
/// How it ends.
pub(super) const PART_SUFFIX: &str = ".part";
