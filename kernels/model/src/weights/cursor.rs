//! Reads little-endian fields, checking every read against the end of the bytes.

use std::fmt::Arguments;
use std::ops::Range;

use super::error::{Fault, WeightError};

/// Position in the first bytes of a file. Invariant: `at <= bytes.len()`.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Size of the file in bytes; at least `bytes.len()`.
    total: u64,
    /// End of a field that is inside the file, but not in `bytes`. Set with the error that this
    /// causes.
    missing: Option<u64>,
}

/// Error about the field stored at byte `offset`.
pub(super) fn bad(field: Arguments<'_>, offset: usize, fault: Fault) -> WeightError {
    WeightError::Field { field: field.to_string(), offset: offset as u64, fault }
}

impl<'a> Cursor<'a> {
    /// For all bytes of a file.
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor::of_start(bytes, bytes.len() as u64)
    }

    /// For the first bytes of a file of `total` bytes.
    pub(super) fn of_start(bytes: &'a [u8], total: u64) -> Cursor<'a> {
        Cursor { bytes, at: 0, total: total.max(bytes.len() as u64), missing: None }
    }

    /// If a read failed only because `bytes` ends early: the number of bytes that it needs.
    pub(super) fn missing(&self) -> Option<u64> {
        self.missing
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Number of bytes from here to the end of the file.
    pub(super) fn left(&self) -> u64 {
        self.total - self.at as u64
    }

    /// Skips `len` bytes of the field at `offset` and returns their range; `what` describes them in
    /// the error.
    pub(super) fn skip(
        &mut self,
        len: Option<u64>,
        field: Arguments<'_>,
        offset: usize,
        what: Arguments<'_>,
    ) -> Result<Range<usize>, WeightError> {
        let (start, in_file) = (self.at, len.filter(|len| *len <= self.left()));
        let end = in_file.map(|len| start as u64 + len);
        match end.filter(|end| *end <= self.bytes.len() as u64) {
            Some(end) => {
                self.at = end as usize;
                Ok(start..self.at)
            }
            None => {
                self.missing = end;
                let fault = Fault::PastEnd { what: what.to_string(), left: self.left() };
                Err(bad(field, offset, fault))
            }
        }
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(
        &mut self,
        field: Arguments<'_>,
    ) -> Result<[u8; N], WeightError> {
        let range =
            self.skip(Some(N as u64), field, self.at, format_args!("a number of {N} bytes"))?;
        let mut out = [0; N];
        out.copy_from_slice(&self.bytes[range]);
        Ok(out)
    }

    pub(super) fn u32(&mut self, field: Arguments<'_>) -> Result<u32, WeightError> {
        self.array(field).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, field: Arguments<'_>) -> Result<u64, WeightError> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// Reads a string, a u64 length followed by bytes; returns the range of the bytes.
    pub(super) fn string(&mut self, field: Arguments<'_>) -> Result<Range<usize>, WeightError> {
        let offset = self.at;
        let len = self.u64(format_args!("{field}: string length"))?;
        self.skip(Some(len), field, offset, format_args!("string of {len} bytes"))
    }

    /// Reads a name: a non-empty UTF-8 string of at most `limit` bytes.
    pub(super) fn name(
        &mut self,
        field: Arguments<'_>,
        limit: u64,
    ) -> Result<&'a str, WeightError> {
        let offset = self.at;
        let range = self.string(field)?;
        let len = range.len() as u64;
        if len == 0 {
            return Err(bad(field, offset, Fault::Empty));
        }
        if len > limit {
            return Err(bad(
                format_args!("{field}: length"),
                offset,
                Fault::AboveLimit { found: len, limit },
            ));
        }
        std::str::from_utf8(&self.bytes[range]).map_err(|_| bad(field, offset, Fault::NotUtf8))
    }

    /// The bytes of a range that a read has returned.
    pub(super) fn bytes(&self, range: Range<usize>) -> &'a [u8] {
        &self.bytes[range]
    }
}
