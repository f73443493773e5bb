//! Bytes of a file, on disk or in memory, read in order.

use std::fmt::Arguments;

use super::LegacyError;
use crate::weights::cursor::bad;
use crate::weights::{DataFile, Fault, ReadFault, WeightError};

/// Where the bytes of a file are.
#[derive(Debug)]
pub(super) enum Source {
    File(DataFile),
    Bytes(Vec<u8>),
}

impl Source {
    pub(super) fn len(&self) -> u64 {
        match self {
            Source::File(file) => file.bytes_total(),
            Source::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Fills `to` with the bytes from byte `at` on.
    pub(super) fn read(&self, at: u64, to: &mut [u8]) -> Result<(), ReadFault> {
        match self {
            Source::File(file) => file.read(at, to),
            Source::Bytes(bytes) => {
                let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
                let found = rest.and_then(|rest| rest.get(..to.len()));
                let then = self.len();
                to.copy_from_slice(found.ok_or(ReadFault::Truncated { now: then, then })?);
                Ok(())
            }
        }
    }
}

/// Bytes that are read ahead.
const WINDOW: u64 = 1 << 16;

/// Reads fields in order. Invariant: `at <= source.len()`.
pub(super) struct Reader<'a> {
    source: &'a Source,
    at: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a Source) -> Reader<'a> {
        Reader { source, at: 0, window: Vec::new(), window_at: 0 }
    }

    pub(super) fn at(&self) -> u64 {
        self.at
    }

    pub(super) fn left(&self) -> u64 {
        self.source.len() - self.at
    }

    /// The next `len` bytes of a field.
    pub(super) fn bytes(&mut self, len: u64, field: Arguments<'_>) -> Result<Vec<u8>, LegacyError> {
        let start = self.skip(len, field)?;
        let mut to = vec![0; len as usize];
        if start < self.window_at || self.at > self.window_at + self.window.len() as u64 {
            self.window_at = start;
            let ahead = (self.source.len() - start).min(WINDOW.max(len));
            self.window.resize(ahead as usize, 0);
            let read = self.source.read(start, &mut self.window);
            read.map_err(|fault| WeightError::Read { fault })?;
        }
        let from = (start - self.window_at) as usize;
        to.copy_from_slice(&self.window[from..from + len as usize]);
        Ok(to)
    }

    /// Skips `len` bytes of a field; returns the offset of the first.
    pub(super) fn skip(&mut self, len: u64, field: Arguments<'_>) -> Result<u64, LegacyError> {
        let start = self.at;
        if len > self.left() {
            let fault = Fault::PastEnd { what: format!("{len} bytes"), left: self.left() };
            return Err(self.bad(start, field, fault));
        }
        self.at += len;
        Ok(start)
    }

    /// The next number.
    pub(super) fn u32(&mut self, field: Arguments<'_>) -> Result<u32, LegacyError> {
        let mut number = [0; 4];
        number.copy_from_slice(&self.bytes(4, field)?);
        Ok(u32::from_le_bytes(number))
    }

    /// Error about a field at byte `offset`.
    pub(super) fn bad(&self, offset: u64, field: Arguments<'_>, fault: Fault) -> LegacyError {
        bad(field, offset as usize, fault).into()
    }
}
