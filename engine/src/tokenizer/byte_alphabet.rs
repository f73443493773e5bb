//! The printable characters by which byte-level BPE represents bytes as text.
//!
//! Bytes that are printable in Latin-1 represent themselves; the other 68 are numbered, in order,
//! from U+0100.

/// Whether a byte represents itself.
const fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// Character of every byte.
const CHARS: [char; 256] = {
    let mut chars = ['\0'; 256];
    let mut byte = 0;
    let mut next = 0x100;
    while byte < 256 {
        chars[byte] = if is_printable(byte as u8) {
            byte as u8 as char
        } else {
            next += 1;
            match char::from_u32(next - 1) {
                Some(char) => char,
                None => '\0',
            }
        };
        byte += 1;
    }
    chars
};

/// Byte of every character, indexed by code point; `None` for gaps.
const BYTES: [Option<u8>; 0x144] = {
    let mut bytes = [None; 0x144];
    let mut byte = 0;
    while byte < 256 {
        bytes[CHARS[byte] as usize] = Some(byte as u8);
        byte += 1;
    }
    bytes
};

/// The character that represents `byte`.
pub(super) fn char_of(byte: u8) -> char {
    CHARS[usize::from(byte)]
}

/// The byte that `char` represents, or `None` if it is outside the alphabet.
pub(super) fn byte_of(char: char) -> Option<u8> {
    BYTES.get(char as usize).copied().flatten()
}

/// Writes the bytes of `text` as alphabet characters into `out`, which is cleared first.
pub(super) fn write(text: &str, out: &mut String) {
    out.clear();
    out.extend(text.bytes().map(char_of));
}

/// The bytes of `token`; characters outside the alphabet represent themselves.
pub(super) fn read(token: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(token.len());
    for char in token.chars() {
        match byte_of(char) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_the_alphabet() {
        for byte in 0..=255 {
            assert_eq!(byte_of(char_of(byte)), Some(byte));
        }
        assert_eq!((char_of(b' '), char_of(b'\n'), char_of(0xAD)), ('Ġ', 'Ċ', 'Ń'));
    }

    #[test]
    fn text_outside_the_alphabet_is_kept() {
        assert_eq!(read("Ġa日\u{ad}"), " a日\u{ad}".as_bytes());
    }
}
