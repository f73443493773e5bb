//! Where packed weights are kept, and the outcome.

use super::error::{CacheReadError, CacheWriteError};
use crate::packed::beyond::BeyondMemory;
use lapwing_model::weights::NoLease;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Where packed weights are kept.
///
/// The file is only ever replaced as a whole, so any number of processes may use and replace it at
/// the same time. Its checksums detect accidental
/// damage, not tampering: a user with write access to the folder can replace the weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackCache {
    /// The file; its folder is created if it is missing.
    pub path: PathBuf,
    /// Size limit of the file in bytes.
    pub bytes_max: u64,
    /// Where its weights are while they are in use.
    pub memory: PackedMemory,
}

/// Where packed weights of a file are while they are in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PackedMemory {
    /// In memory of the process. Every start reads and checks all of them.
    Read,
    /// In the file, which is mapped, so that all processes of the machine have them once, and they are read from the disk when they are
    /// used. The file is checked once; later starts read only its header, and a marker beside it ([`PackCache::marker_of`]). A program
    /// that is about to change the file waits until the weights have been copied. Read in place of mapped where the system
    /// cannot hold back such a program ([`NotMapped`]).
    #[default]
    Mapped,
}

impl PackedMemory {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            PackedMemory::Read => "read",
            PackedMemory::Mapped => "mapped",
        }
    }
}

/// Outcome of using a [`PackCache`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct PackReport {
    /// Whether the weights were in the file; otherwise they were packed.
    pub loaded: bool,
    /// Whether the file is mapped.
    pub mapped: bool,
    /// Whether all bytes of the file were read and checked at this start.
    pub checked: bool,
    /// Why the file is not mapped although it was to be.
    pub not_mapped: Option<NotMapped>,
    /// Why an existing file was not used.
    pub read_error: Option<CacheReadError>,
    /// Why packed weights were not kept; `None` if they were.
    pub write_error: Option<CacheWriteError>,
    /// The weights are larger than the memory that was free: they are read from the disk when they are used.
    pub beyond: Option<BeyondMemory>,
}

/// Why packed weights are in memory of the process, and not in a mapped file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NotMapped {
    /// Another program could change the file while it is mapped, which would end this process.
    #[error(transparent)]
    Lease(NoLease),
    /// The system refuses.
    #[error("the system cannot map it: {0}")]
    System(#[source] io::Error),
    /// The file that this start has written was changed at once.
    #[error("it was written, and then {0}")]
    Unusable(#[source] CacheReadError),
}

impl PackCache {
    /// Whether this is the name of a file that is being written, or was abandoned by a process that
    /// died.
    pub fn is_part(name: &str) -> bool {
        name.starts_with(PART_PREFIX) && name.ends_with(PART_SUFFIX)
    }

    /// The marker of a file of packed weights: a file beside it that says which version of it has been checked in full.
    pub fn marker_of(file: &Path) -> PathBuf {
        let mut name = file.as_os_str().to_owned();
        name.push(MARKER_SUFFIX);
        name.into()
    }
}

/// Prefix of the names of files that are being written.
pub(super) const PART_PREFIX: &str = ".lapwing-";
/// Their suffix.
pub(super) const PART_SUFFIX: &str = ".part";
/// What a marker's name has after that of its file.
const MARKER_SUFFIX: &str = ".checked";
