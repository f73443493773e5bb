//! Decodes a recording from bytes. Every count is checked against the remaining bytes before memory
//! is allocated.

use std::collections::BTreeMap;

use super::{CHECK, HEADER, LaneInfo, MAGIC, Recording, RecordingError, VERSION};
use crate::event::{Event, LaneKind, WORDS};

type Result<T> = std::result::Result<T, RecordingError>;

impl Recording {
    /// Decodes a recording that [`to_bytes`](Recording::to_bytes) encoded. Allocates memory in
    /// proportion to the number of bytes, for any input.
    pub fn from_bytes(bytes: &[u8]) -> Result<Recording> {
        let end = check(bytes)?;
        let mut reader = Reader { bytes: &bytes[..end], at: HEADER };
        let mut recording = Recording {
            meta: reader.meta()?,
            lanes: reader.lanes()?,
            names: reader.names()?,
            dropped: reader.number()?,
            events: Vec::new(),
        };
        recording.events = reader.events()?;
        if reader.at != end {
            return Err(reader.broken("extra bytes after the last column"));
        }
        Ok(recording)
    }
}

/// Checks magic, version, length and checksum; returns the offset of the checksum.
fn check(bytes: &[u8]) -> Result<usize> {
    let start = &bytes[..bytes.len().min(MAGIC.len())];
    // An empty or very short file counts as truncated, not as a foreign one.
    if !MAGIC.starts_with(start) {
        return Err(RecordingError::NotARecording);
    }
    let truncated = |length| RecordingError::Truncated { at: bytes.len() as u64, length };
    let Some(header) = bytes.get(MAGIC.len()..HEADER) else {
        return Err(truncated((HEADER + CHECK) as u64));
    };
    let version = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    if version > VERSION {
        return Err(RecordingError::Newer { version, known: VERSION });
    }
    if version == 0 {
        return Err(RecordingError::Broken {
            what: "the format version is missing",
            at: MAGIC.len() as u64,
        });
    }
    let length = header[4..].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
    let there = bytes.len() as u64;
    if length < (HEADER + CHECK) as u64 {
        return Err(RecordingError::Broken { what: "the length is impossible", at: 12 });
    }
    if there < length {
        return Err(truncated(length));
    }
    if there > length {
        return Err(RecordingError::TooLong { extra: there - length });
    }
    let (body, sum) = bytes.split_at(bytes.len() - CHECK);
    let expected = sum.iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte));
    let found = crc32fast::hash(body);
    if found != expected {
        return Err(RecordingError::Damaged { expected, found });
    }
    Ok(body.len())
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    bytes: &'a [u8],
    /// Offset of the next byte to read.
    at: usize,
}

impl<'a> Reader<'a> {
    fn broken(&self, what: &'static str) -> RecordingError {
        RecordingError::Broken { what, at: self.at as u64 }
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = *self.bytes.get(self.at).ok_or(self.broken("the data ends too early"))?;
        self.at += 1;
        Ok(byte)
    }

    /// Reads an unsigned LEB128 varint in its shortest form.
    fn number(&mut self) -> Result<u64> {
        let start = *self;
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(start.broken("a number has more than 64 bits"));
            }
            number |= bits << shift;
            if byte < 0x80 {
                let shortest = byte != 0 || shift == 0;
                return if shortest {
                    Ok(number)
                } else {
                    Err(start.broken("a number is not in its shortest form"))
                };
            }
        }
        Err(start.broken("a number has more than 64 bits"))
    }

    /// Reads a count of items that take at least `each` bytes.
    fn count(&mut self, what: &'static str, each: usize) -> Result<usize> {
        let at = self.at as u64;
        let count = self.number()?;
        let left = self.bytes.len() - self.at;
        if count > (left / each) as u64 {
            return Err(RecordingError::ImpossibleCount { what, count, at, left: left as u64 });
        }
        Ok(count as usize)
    }

    fn text(&mut self) -> Result<String> {
        let length = self.count("bytes of text", 1)?;
        let text = &self.bytes[self.at..self.at + length];
        let text = std::str::from_utf8(text).map_err(|_| self.broken("a text is not UTF-8"))?;
        self.at += length;
        Ok(text.to_owned())
    }

    fn meta(&mut self) -> Result<BTreeMap<String, String>> {
        let mut meta = BTreeMap::new();
        for _ in 0..self.count("facts", 2)? {
            let start = *self;
            let (key, value) = (self.text()?, self.text()?);
            if meta.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(start.broken("the facts are not sorted"));
            }
            meta.insert(key, value);
        }
        Ok(meta)
    }

    fn lanes(&mut self) -> Result<Vec<LaneInfo>> {
        let count = self.count("lanes", 2)?;
        let mut lanes = Vec::with_capacity(count);
        for _ in 0..count {
            let start = *self;
            let kind = LaneKind::from_code(self.byte()?);
            let kind = kind.ok_or(start.broken("the kind of a lane is unknown"))?;
            lanes.push(LaneInfo { name: self.text()?, kind });
        }
        Ok(lanes)
    }

    fn names(&mut self) -> Result<Vec<String>> {
        let count = self.count("names", 1)?;
        let mut names = Vec::with_capacity(count);
        for _ in 0..count {
            names.push(self.text()?);
        }
        Ok(names)
    }

    fn events(&mut self) -> Result<Vec<Event>> {
        let count = self.count("events", WORDS)?;
        let mut lengths = [0; WORDS];
        for length in &mut lengths {
            *length = self.count("bytes of a column", 1)?;
        }
        let mut columns = [*self; WORDS];
        for (column, length) in columns.iter_mut().zip(lengths) {
            *column = self.part(length)?;
        }
        let mut events = Vec::with_capacity(count);
        let mut words = [0u64; WORDS];
        for number in 0..count {
            for (word, column) in words.iter_mut().zip(&mut columns) {
                *word = word.wrapping_add(unzigzag(column.number()?));
            }
            let event = Event::from_words(&words).ok_or(RecordingError::BrokenEvent {
                number: number as u64,
                count: count as u64,
            })?;
            events.push(event);
        }
        match columns.iter().find(|column| column.at != column.bytes.len()) {
            Some(column) => Err(column.broken("a column has more values than there are events")),
            None => Ok(events),
        }
    }

    /// Splits off the next `length` bytes as a separate reader.
    fn part(&mut self, length: usize) -> Result<Reader<'a>> {
        let (start, end) = (self.at, self.at.saturating_add(length));
        let bytes = self.bytes.get(..end).ok_or(self.broken("a column extends beyond the end"))?;
        self.at = end;
        Ok(Reader { bytes, at: start })
    }
}

fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}
