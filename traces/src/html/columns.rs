//! Encodes columns of numbers as variable-length integers, plain or as differences.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;

/// Largest plain number: the page computes with 64-bit floats, which are exact up to here.
pub(super) const PLAIN_MAX: u64 = (1 << 53) - 1;

/// Largest signed number, chosen so that zigzagged differences stay exact too; 26 days in
/// nanoseconds.
pub(super) const SIGNED_MAX: i64 = 1 << 51;

/// Description of a column, with which the page decodes it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Column {
    name: String,
    count: usize,
    /// Values are zigzagged differences from the previous value instead of plain.
    delta: bool,
}

/// A sequence of encoded columns.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) index: Vec<Column>,
    bytes: Vec<u8>,
}

impl Columns {
    /// Adds plain numbers, limited to [`PLAIN_MAX`].
    pub(super) fn plain(&mut self, name: &str, values: impl Iterator<Item = u64>) {
        let mut count = 0;
        for value in values {
            self.put(value.min(PLAIN_MAX));
            count += 1;
        }
        self.index.push(Column { name: name.to_owned(), count, delta: false });
    }

    /// Adds numbers as differences, limited to ±[`SIGNED_MAX`].
    pub(super) fn delta(&mut self, name: &str, values: impl Iterator<Item = i64>) {
        let (mut count, mut before) = (0, 0);
        for value in values {
            let value = value.clamp(-SIGNED_MAX, SIGNED_MAX);
            self.put(zigzag(value - before));
            before = value;
            count += 1;
        }
        self.index.push(Column { name: name.to_owned(), count, delta: true });
    }

    fn put(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// The length of `header` (4 bytes, little-endian), the header and the columns, deflated.
    pub(super) fn deflate(&self, header: &[u8]) -> std::io::Result<Vec<u8>> {
        let length = u32::try_from(header.len()).map_err(std::io::Error::other)?;
        deflated(&[&length.to_le_bytes(), header, &self.bytes])
    }
}

/// Concatenates pieces and deflates them.
pub(super) fn deflated(pieces: &[&[u8]]) -> std::io::Result<Vec<u8>> {
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::new(9));
    for piece in pieces {
        deflate.write_all(piece)?;
    }
    deflate.finish()
}

/// Maps small numbers of either sign to small numbers.
pub(super) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_the_exact_range_of_a_float_are_clamped() {
        let mut columns = Columns::default();
        columns.plain("a", [0, 127, 128, u64::MAX].into_iter());
        assert_eq!(columns.bytes[..4], [0, 127, 0x80, 1]);
        assert_eq!(columns.bytes[4..], [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]);
        let mut columns = Columns::default();
        columns.delta("b", [i64::MIN, i64::MAX, 0].into_iter());
        assert_eq!(columns.index[0].count, 3);
        assert!(columns.bytes.len() <= 24);
    }

    #[test]
    fn zigzag_maps_small_differences_of_either_sign_to_small_numbers() {
        assert_eq!([0, -1, 1, -2, 2].map(zigzag), [0, 1, 2, 3, 4]);
    }
}
