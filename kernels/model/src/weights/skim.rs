//! Finds the end of a header before it is parsed, so that exactly its bytes are read and kept.

use super::data_file::{DataFile, ReadFault};
use super::gguf::{KEY_BYTES_MAX, KEYS_MAX, TENSORS_MAX};
use super::tensor::NAME_MAX;
use super::value::ValueKind;
use std::io::ErrorKind;

/// Bytes read at a time.
const STEP: usize = 1 << 20;
/// Maximum nesting of arrays, as the parser accepts.
const DEPTH_MAX: usize = 4;

/// Reads a file from its start, as far as needed.
struct Skimmer<'a> {
    file: &'a DataFile,
    /// Most bytes to read.
    most: usize,
    bytes: Vec<u8>,
    at: usize,
    /// Why no more bytes could be read.
    fault: Option<ReadFault>,
}

/// The first bytes of a file: its header, metadata and tensor table. If they are invalid or longer than
/// `most`, what was read up to there: the parser, which checks everything, finds the error. Also the
/// reason, if bytes could not be read.
pub(super) fn header(file: &DataFile, most: u64) -> (Vec<u8>, Option<ReadFault>) {
    let most = usize::try_from(file.bytes_total().min(most)).unwrap_or(usize::MAX);
    let mut skimmer = Skimmer { file, most, bytes: Vec::new(), at: 0, fault: None };
    if skimmer.skim().is_some() {
        skimmer.bytes.truncate(skimmer.at);
    }
    skimmer.bytes.shrink_to_fit();
    (skimmer.bytes, skimmer.fault)
}

impl Skimmer<'_> {
    /// Goes to the end of the tensor table.
    fn skim(&mut self) -> Option<()> {
        if self.take::<4>()? != *b"GGUF" {
            return None;
        }
        self.skip(4)?;
        let (tensors, keys) = (self.number()?, self.number()?);
        if keys > KEYS_MAX || tensors > TENSORS_MAX {
            return None;
        }
        for _ in 0..keys {
            self.name(KEY_BYTES_MAX)?;
            let kind = self.kind()?;
            self.value(kind, 0)?;
        }
        for _ in 0..tensors {
            self.name(NAME_MAX)?;
            let dims = u64::from(self.u32()?);
            self.skip(8 * dims + 12)?;
        }
        Some(())
    }

    fn value(&mut self, kind: ValueKind, depth: usize) -> Option<()> {
        match kind {
            ValueKind::String => self.string(),
            ValueKind::Array if depth < DEPTH_MAX => {
                let (kind, count) = (self.kind()?, self.number()?);
                match kind.element_bytes() {
                    (bytes, true) => self.skip(count.checked_mul(bytes)?),
                    (_, false) => (0..count).try_for_each(|_| self.value(kind, depth + 1)),
                }
            }
            ValueKind::Array => None,
            other => self.skip(other.element_bytes().0),
        }
    }

    fn kind(&mut self) -> Option<ValueKind> {
        ValueKind::from_gguf(self.u32()?)
    }

    fn string(&mut self) -> Option<()> {
        self.name(u64::MAX)
    }

    fn name(&mut self, most: u64) -> Option<()> {
        let len = self.number().filter(|len| *len <= most)?;
        self.skip(len)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.skip(N as u64)?;
        self.bytes[self.at - N..self.at].try_into().ok()
    }

    /// Skips bytes, which are read if they were not yet.
    fn skip(&mut self, len: u64) -> Option<()> {
        let end = self.at.checked_add(usize::try_from(len).ok()?)?;
        if end > self.bytes.len() {
            self.read_to(end)?;
        }
        self.at = end;
        Some(())
    }

    #[cold]
    fn read_to(&mut self, end: usize) -> Option<()> {
        let start = self.bytes.len();
        let target = end.max(start + STEP).min(self.most);
        if end > target {
            return None;
        }
        if self.bytes.try_reserve(target - start).is_err() {
            self.fault = Some(ReadFault::System(ErrorKind::OutOfMemory.into()));
            return None;
        }
        self.bytes.resize(target, 0);
        self.fault = self.file.read(start as u64, &mut self.bytes[start..]).err();
        if self.fault.is_some() {
            self.bytes.truncate(start);
            return None;
        }
        Some(())
    }
}
