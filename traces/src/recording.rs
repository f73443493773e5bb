//! A recording: all recorded events of a run, in memory or in a file.

use std::collections::BTreeMap;

use crate::event::{Event, LaneKind};

mod decode;
mod encode;
mod error;
mod file;
mod parts;

pub use error::RecordingError;

/// A lane of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneInfo {
    /// Name, such as `cpu` or `scheduler`.
    pub name: String,
    /// Kind of the lane.
    pub kind: LaneKind,
}

/// Events of a run, with the tables that give meaning to their numbers.
///
/// # File format
///
/// Version 4: version 1 has no roles and no outcomes of drafted rows, version 2 no order of spans without a message
/// between them, no targets for the time between tokens, and no limits of chunks, version 3 no data from a disk, and no choices of
/// routes. All fixed-size numbers are
/// little-endian; every other number is an unsigned LEB128 varint in its shortest form:
///
/// | bytes | content |
/// |---|---|
/// | 8 | `89 4C 57 54 0D 0A 1A 0A` |
/// | 4 | version |
/// | 8 | length of the whole file |
/// | … | number of facts; for each, sorted by key: key, value (length, UTF-8) |
/// | … | number of lanes; for each: code of its kind, name (length, UTF-8) |
/// | … | number of names; for each: length, UTF-8 |
/// | … | number of dropped events |
/// | … | number of events; then the length in bytes of each of the [`WORDS`] columns |
/// | … | the columns: one word of each event, as the zigzagged difference from the previous event |
/// | 4 | CRC-32 (IEEE) of all preceding bytes |
///
/// Nothing is compressed, so a small file cannot make the reader allocate much memory. The encoding
/// is canonical: a file of the present version that loads is written back byte for byte.
///
/// [`WORDS`]: crate::event::WORDS
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Facts about the run, such as model, strategy and machine. `clock` is `virtual` for a
    /// simulated run.
    pub meta: BTreeMap<String, String>,
    /// Lanes, indexed by their number.
    pub lanes: Vec<LaneInfo>,
    /// Interned strings, indexed by their number.
    pub names: Vec<String>,
    /// Events, in no particular order.
    pub events: Vec<Event>,
    /// Number of events dropped for lack of room.
    pub dropped: u64,
}

/// First bytes of a file: not valid text, and damaged by any conversion of line ends.
const MAGIC: [u8; 8] = *b"\x89LWT\r\n\x1a\n";

/// Format version that is written.
const VERSION: u32 = 4;

/// Length in bytes of magic, version and length.
const HEADER: usize = 8 + 4 + 8;

/// Length in bytes of the checksum.
const CHECK: usize = 4;
