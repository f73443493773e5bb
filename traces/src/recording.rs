//! A recording: everything that was recorded of a run, in memory or in a file.

use std::collections::BTreeMap;

use crate::event::{Event, LaneKind};

mod decode;
mod encode;
mod error;
mod file;

pub use error::RecordingError;

/// Name that a recording's file ends with.
pub const FILE_EXTENSION: &str = "lwt";

/// A lane of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneInfo {
    /// Name, such as `cpu` or `scheduler`.
    pub name: String,
    /// What it is.
    pub kind: LaneKind,
}

/// Events of a run, with what their numbers mean.
///
/// # File format
///
/// Version 1, all fixed-size numbers little-endian, every other number an unsigned LEB128 varint
/// in its shortest form:
///
/// | bytes | what |
/// |---|---|
/// | 8 | `89 4C 57 54 0D 0A 1A 0A` |
/// | 4 | version |
/// | 8 | length of the whole file |
/// | … | number of facts; of each, sorted by key: key, value (length, UTF-8) |
/// | … | number of lanes; of each: code of its kind, name (length, UTF-8) |
/// | … | number of names; of each: length, UTF-8 |
/// | … | number of dropped events |
/// | … | number of events; then the length in bytes of each of the [`WORDS`] columns |
/// | … | the columns: of each event that word, as zigzag of the difference to the event before |
/// | 4 | CRC-32 (IEEE) of everything before |
///
/// Nothing is compressed, so a small file cannot ask for much memory. One recording has exactly
/// one form: what loads is written again byte for byte.
///
/// [`WORDS`]: crate::event::WORDS
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Facts about the run: model, strategy, machine. `clock` is `virtual` for a simulated run.
    pub meta: BTreeMap<String, String>,
    /// Lanes by their number.
    pub lanes: Vec<LaneInfo>,
    /// Texts by their number.
    pub names: Vec<String>,
    /// Events, in no particular order.
    pub events: Vec<Event>,
    /// Events that found no room.
    pub dropped: u64,
}

/// First bytes of a file: not text, and damaged by whatever changes line ends.
const MAGIC: [u8; 8] = *b"\x89LWT\r\n\x1a\n";

/// Version that is written.
const VERSION: u32 = 1;

/// Bytes of magic, version and length.
const HEADER: usize = 8 + 4 + 8;

/// Bytes of the check sum.
const CHECK: usize = 4;
