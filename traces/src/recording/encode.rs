//! Encodes a recording as bytes.

use super::{CHECK, HEADER, MAGIC, Recording, VERSION};
use crate::event::WORDS;

impl Recording {
    /// Encodes the recording in the file format described at [`Recording`].
    ///
    /// Tags beyond the range that [`Tags`](crate::event::Tags) states are clamped to the largest
    /// allowed value.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER + CHECK + 64 * self.names.len());
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        // Placeholder for the length, which is known only at the end.
        out.extend([0; 8]);
        self.put_tables(&mut out);
        self.put_events(&mut out);
        let length = (out.len() + CHECK) as u64;
        out[12..HEADER].copy_from_slice(&length.to_le_bytes());
        let check = crc32fast::hash(&out);
        out.extend(check.to_le_bytes());
        out
    }

    fn put_tables(&self, out: &mut Vec<u8>) {
        put(out, self.meta.len() as u64);
        for (key, value) in &self.meta {
            put_text(out, key);
            put_text(out, value);
        }
        put(out, self.lanes.len() as u64);
        for lane in &self.lanes {
            out.push(lane.kind.code());
            put_text(out, &lane.name);
        }
        put(out, self.names.len() as u64);
        for name in &self.names {
            put_text(out, name);
        }
        put(out, self.dropped);
    }

    fn put_events(&self, out: &mut Vec<u8>) {
        let mut columns: [Vec<u8>; WORDS] = std::array::from_fn(|_| Vec::new());
        let mut last = [0; WORDS];
        for event in &self.events {
            let words = event.to_words();
            for (column, (word, last)) in columns.iter_mut().zip(words.iter().zip(&last)) {
                put(column, zigzag(word.wrapping_sub(*last)));
            }
            last = words;
        }
        put(out, self.events.len() as u64);
        for column in &columns {
            put(out, column.len() as u64);
        }
        for column in columns {
            out.extend(column);
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend(text.as_bytes());
}

/// Appends an unsigned LEB128 varint.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Maps small differences of either sign to small numbers.
fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ (difference.cast_signed() >> 63).cast_unsigned()
}
