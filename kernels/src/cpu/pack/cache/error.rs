//! Why a file of packed weights is not used, or not written.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a file of packed weights is not used. The weights are then packed, and the file is replaced.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CacheReadError {
    /// The system does not give it.
    #[error("it cannot be read: {0}")]
    Read(#[source] io::Error),
    /// It is something else.
    #[error("it is no file of packed weights")]
    Foreign,
    /// Another version of Lapwing has written it.
    #[error("it is of version {found}, and this program's is {expected}")]
    Version {
        /// Its versions, of the file and of the packed values.
        found: String,
        /// Those that are read.
        expected: String,
    },
    /// It is too short, or its checksums are wrong.
    #[error("it is damaged: {what}")]
    Damaged {
        /// Which part of it.
        what: &'static str,
    },
    /// It is of another weight file, or of what this one was before.
    #[error("the model's file has changed since it was made")]
    Stale,
    /// It has other matrices of the weight file, or has them in another layout.
    #[error("it holds other matrices")]
    Other,
}

/// Why packed weights are not kept. The next start packs again.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CacheWriteError {
    /// The system refuses: no space, no permission.
    #[error("cannot {doing} {path}: {source}; free space, or keep them in another folder", path = path.display())]
    Write {
        /// What was tried.
        doing: &'static str,
        /// The file that was to be there.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is larger than it may be.
    #[error("its {bytes} bytes are more than the {bytes_max} that it may have")]
    TooLarge {
        /// Bytes that it would have.
        bytes: u64,
        /// Bytes that it may have.
        bytes_max: u64,
    },
    /// The weight file was changed so short a time ago that another change would not show.
    #[error("the model's file was written just now; the next start keeps them")]
    JustChanged,
    /// The weight file was changed while it was packed.
    #[error("the model's file has been changed since it was opened; start again")]
    Changing,
}
