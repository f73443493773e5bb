//! Why a file of packed weights is not used or not written.

use super::report::NotMapped;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a file of packed weights is not used. The weights are then packed again and the file is
/// replaced.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CacheReadError {
    /// The file cannot be read, or there is no memory for it.
    #[error("it cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The file became shorter while it was read.
    #[error("another program truncated it while it was read")]
    Truncated,
    /// It is another kind of file.
    #[error("it is not a file of packed weights")]
    Foreign,
    /// It was written by another version of Lapwing.
    #[error("it has version {found}; this program reads {expected}")]
    Version {
        /// Versions of the file's format and of its packed values.
        found: String,
        /// Versions that this program reads.
        expected: String,
    },
    /// It is too short, or its checksums are wrong.
    #[error("it is damaged: {what}")]
    Damaged {
        /// The damaged part.
        what: &'static str,
    },
    /// It belongs to another weight file, or to an earlier state of this one.
    #[error("it was made from another state of the model file")]
    Stale,
    /// It has other matrices of the weight file, or another layout.
    #[error("it holds other matrices")]
    Other,
}

/// Why packed weights are not kept. The next start packs again.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CacheWriteError {
    /// The system refused: no space, no permission.
    #[error("cannot {doing} {path}: {source}; free space, or keep them in another folder", path = path.display())]
    Write {
        /// The failed action.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// It would exceed the size limit.
    #[error(
        "its {bytes} bytes exceed the limit of {bytes_max} for the folder; raise it (`packed_cache_max`)"
    )]
    TooLarge {
        /// Bytes that it would have.
        bytes: u64,
        /// Size limit in bytes.
        bytes_max: u64,
    },
    /// It would exceed the limit on file size that the system sets to this process.
    #[error("its {bytes} bytes exceed the limit on file size of {limit}; raise it (`ulimit -f`)")]
    FileSizeLimit {
        /// Bytes that it would have.
        bytes: u64,
        /// The process's limit in bytes.
        limit: u64,
    },
    /// The disk has no room for it.
    #[error(
        "its {bytes} bytes do not fit into the {free} that are free where {path} is to be; free space, or keep them in another folder",
        path = path.display()
    )]
    DiskFull {
        /// Bytes that it would have.
        bytes: u64,
        /// Bytes that are free.
        free: u64,
        /// The file.
        path: PathBuf,
    },
    /// The weight file was changed so recently that a further change might not show in its time
    /// stamp.
    #[error("the model file was written just now; the next start keeps them")]
    JustChanged,
    /// The weight file was changed while it was packed.
    #[error("the model file has changed since it was opened; start again")]
    Changing,
}

/// Why weights that are larger than memory are not in a mapped file, as they must be.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MustMap {
    /// Packed weights are not kept in files.
    #[error(
        "packed weights are not kept: name a folder for them (`packed_cache`; on the command line leave out --no-packed-cache)"
    )]
    NotKept,
    /// They are to be read into memory.
    #[error(
        "the settings say that it is read: let it be mapped (`packed_memory`; on the command line leave out --no-mmap)"
    )]
    Read,
    /// The model's file cannot be read for its identity.
    #[error("the model file cannot be read to identify it; start again")]
    NoIdentity,
    /// The file cannot be written.
    #[error("it cannot be written: {0}")]
    NotWritten(#[source] CacheWriteError),
    /// The file cannot be mapped.
    #[error("{0}")]
    NotMapped(#[source] NotMapped),
}
