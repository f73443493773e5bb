//! The map of characters of SentencePiece's normaliser: texts and what each becomes.
//!
//! The file stores it as `tokenizer.ggml.precompiled_charsmap`: the length of a trie in bytes, the trie, and the replacements,
//! each with a zero behind it. The trie is a double array of 32-bit units, as in the library Darts-clone: the child for
//! byte `c` of the node at `n` is at `n ^ offset(n) ^ c`, and its label is `c`.

use crate::tokenizer::error::TokenizerError;

/// A map of characters; empty if the file has none.
pub(super) struct CharMap {
    units: Vec<u32>,
    replacements: String,
}

/// The longest text of the map that another begins with.
pub(super) struct Found<'a> {
    /// What it becomes.
    pub(super) replacement: &'a str,
    /// Its length in bytes.
    pub(super) length: usize,
}

/// Longest replacement in bytes: of U+FDFA, the longest of the normal form NFKC, it has 33.
const REPLACEMENT_BYTES_MAX: usize = 256;

/// Bit of units that hold a value, which is the position of a replacement.
const VALUE: u32 = 1 << 31;

impl CharMap {
    /// Reads a map.
    ///
    /// # Errors
    /// If a part is missing, the replacements are not UTF-8, or a value is no position of a replacement.
    pub(super) fn new(bytes: &[u8]) -> Result<Self, TokenizerError> {
        if bytes.is_empty() {
            return Ok(Self { units: Vec::new(), replacements: String::new() });
        }
        let damaged = |what| TokenizerError::CharMap { what };
        let (length, rest) =
            bytes.split_first_chunk::<4>().ok_or(damaged("it has no length of the trie"))?;
        let length = u32::from_le_bytes(*length) as usize;
        let (trie, replacements) =
            rest.split_at_checked(length).ok_or(damaged("the trie is longer than the map"))?;
        let (units, odd) = trie.as_chunks::<4>();
        if !odd.is_empty() {
            return Err(damaged("the trie ends inside a number"));
        }
        let units: Vec<u32> = units.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
        let replacements = std::str::from_utf8(replacements)
            .map_err(|_| damaged("the replacements are not UTF-8"))?
            .to_owned();
        if replacements.split('\0').any(|text| text.len() > REPLACEMENT_BYTES_MAX) {
            return Err(damaged("a replacement is longer than 256 bytes"));
        }
        let map = Self { units, replacements };
        let mut values = map.units.iter().filter(|unit| **unit & VALUE != 0);
        if values.any(|unit| map.replacement(unit & !VALUE).is_none()) {
            return Err(damaged("a value is no position of a replacement"));
        }
        Ok(map)
    }

    /// The longest text of the map that `text` begins with.
    pub(super) fn longest(&self, text: &str) -> Option<Found<'_>> {
        let mut node = offset(*self.units.first()?);
        let mut found = None;
        for (at, byte) in text.bytes().enumerate() {
            let Some(unit) = self.child(node, byte) else { break };
            node ^= u32::from(byte) ^ offset(unit);
            let length = at + 1;
            if let Some(replacement) = self.value(node, unit)
                && text.is_char_boundary(length)
            {
                found = Some(Found { replacement, length });
            }
        }
        found
    }

    /// Whether an ASCII character stays what it is, also among others.
    pub(super) fn keeps(&self, byte: u8) -> bool {
        let Some(root) = self.units.first() else { return true };
        let root = offset(*root);
        let Some(unit) = self.child(root, byte) else { return true };
        let node = root ^ u32::from(byte) ^ offset(unit);
        self.value(node, unit).is_none() && (1..128).all(|next| self.child(node, next).is_none())
    }

    /// The unit of the child for `byte`. Zero ends a text, and is no part of one.
    fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let unit = *self.units.get((node ^ u32::from(byte)) as usize)?;
        (byte != 0 && unit & (VALUE | 0xFF) == u32::from(byte)).then_some(unit)
    }

    /// What the text that leads to `node` becomes, if the map has that text.
    fn value(&self, node: u32, unit: u32) -> Option<&str> {
        let has_value = unit & (1 << 8) != 0;
        let value = *self.units.get(node as usize).filter(|_| has_value)?;
        self.replacement(value & !VALUE)
    }

    /// The replacement at a position.
    fn replacement(&self, position: u32) -> Option<&str> {
        let rest = self.replacements.get(position as usize..)?;
        rest.split_once('\0').map(|(replacement, _)| replacement)
    }
}

/// Distance of a node's children.
fn offset(unit: u32) -> u32 {
    (unit >> 10) << ((unit & (1 << 9)) >> 6)
}
