//! Why a recording could not be read or written.

use std::io;
use std::path::PathBuf;

/// Why a recording could not be read or written, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The operating system could not read the file.
    #[error("cannot read the recording {}: {source}; check the path", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The operating system could not write the file; one that was there is as it was.
    #[error("cannot write the recording {}: {source}; check the folder, its rights and the space left", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// What is in this file is wrong.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with its bytes.
        source: Box<RecordingError>,
    },
    /// The bytes are something else.
    #[error(
        "this is no timeline recording (a .lwt file): it does not begin like one; \
         give a file that `--trace` or `Recording::save` wrote"
    )]
    NotARecording,
    /// Written by a later version of this library.
    #[error(
        "the recording has format version {version}, and this program reads up to {known}; \
         use a newer lapwing"
    )]
    Newer {
        /// Version of the file.
        version: u32,
        /// Latest version that can be read.
        known: u32,
    },
    /// The end is missing.
    #[error(
        "the recording is cut off at byte {at} of {length}; copy it again, or record again and \
         let the program end properly"
    )]
    Truncated {
        /// Bytes that are there.
        at: u64,
        /// Bytes that the file says it has.
        length: u64,
    },
    /// Something stands after the end.
    #[error(
        "{extra} bytes follow the end of the recording; it was appended to: cut them off, or \
         copy it again"
    )]
    TooLong {
        /// Bytes after the end.
        extra: u64,
    },
    /// Bytes changed since it was written.
    #[error(
        "the recording is damaged: its check sum is {found:08x} instead of {expected:08x}; \
         copy it again, in binary mode, or record again"
    )]
    Damaged {
        /// Check sum that the file has.
        expected: u32,
        /// Check sum of its bytes.
        found: u32,
    },
    /// A count that the file is too small for.
    #[error(
        "byte {at}: {count} {what} cannot be in the {left} bytes that follow; the program that \
         wrote this recording is at fault: record again with another version of it"
    )]
    ImpossibleCount {
        /// What is counted.
        what: &'static str,
        /// How many there should be.
        count: u64,
        /// Where the count stands.
        at: u64,
        /// Bytes after it.
        left: u64,
    },
    /// A piece that is not as the format says.
    #[error(
        "byte {at}: {what}; the program that wrote this recording is at fault: record again with \
         another version of it"
    )]
    Broken {
        /// What is wrong.
        what: &'static str,
        /// Where, in bytes from the beginning.
        at: u64,
    },
    /// An event that no program of this version can have recorded.
    #[error(
        "event {number} of {count} is none that this version knows; the program that wrote this \
         recording is at fault: record again with another version of it"
    )]
    BrokenEvent {
        /// Its number, from 0.
        number: u64,
        /// Number of events.
        count: u64,
    },
}
