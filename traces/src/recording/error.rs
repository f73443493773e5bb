//! Errors of reading and writing recordings.

use std::io;
use std::path::PathBuf;

/// Why a recording could not be read or written, with a way to mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The operating system could not read the file.
    #[error("cannot read the recording {}: {source}; check the path", path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The operating system could not write the file. An existing file is unchanged.
    #[error("cannot write the recording {}: {source}; check the folder, its permissions and the free space", path.display())]
    Write {
        /// File.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The content of the file is not valid.
    #[error("{}: {source}", path.display())]
    File {
        /// File.
        path: PathBuf,
        /// Error in the content.
        source: Box<RecordingError>,
    },
    /// The bytes are not a recording.
    #[error(
        "this is not a timeline recording (a .lwt file): it does not start with the \
         magic bytes; give a file written by `--trace` or `Recording::save`"
    )]
    NotARecording,
    /// The recording was written by a later version of this library.
    #[error(
        "the recording has format version {version}, but this program reads versions up to {known}; \
         use a newer lapwing"
    )]
    Newer {
        /// Format version of the file.
        version: u32,
        /// Latest format version that can be read.
        known: u32,
    },
    /// The recording is truncated.
    #[error(
        "the recording is cut off at byte {at} of {length}; copy it again, or record again and \
         let the program end normally"
    )]
    Truncated {
        /// Number of bytes present.
        at: u64,
        /// Number of bytes stated in the file.
        length: u64,
    },
    /// There are bytes after the end of the recording.
    #[error(
        "there are {extra} bytes after the end of the recording; remove them or copy the file \
         again"
    )]
    TooLong {
        /// Number of bytes after the end.
        extra: u64,
    },
    /// The checksum does not match: bytes changed after writing.
    #[error(
        "the recording is damaged: its checksum is {found:08x} instead of {expected:08x}; \
         copy it again, in binary mode, or record again"
    )]
    Damaged {
        /// Checksum stored in the file.
        expected: u32,
        /// Checksum of the bytes present.
        found: u32,
    },
    /// A count is larger than the remaining bytes allow.
    #[error(
        "byte {at}: {count} {what} do not fit into the remaining {left} bytes; this is an error of \
         the program that wrote the recording: record again with another version of it"
    )]
    ImpossibleCount {
        /// Items counted.
        what: &'static str,
        /// Number of items stated.
        count: u64,
        /// Offset of the count, in bytes.
        at: u64,
        /// Bytes remaining after it.
        left: u64,
    },
    /// A part violates the format.
    #[error(
        "byte {at}: {what}; this is an error of the program that wrote the recording: record again \
         with another version of it"
    )]
    Broken {
        /// Violation.
        what: &'static str,
        /// Offset, in bytes.
        at: u64,
    },
    /// An event that this version cannot have recorded.
    #[error(
        "event {number} of {count} is unknown to this version; this is an error of the program that \
         wrote the recording: record again with another version of it"
    )]
    BrokenEvent {
        /// Index of the event, from 0.
        number: u64,
        /// Total number of events.
        count: u64,
    },
}
