//! Writing MessagePack.

/// Bytes of MessagePack, value by value.
#[derive(Debug, Default)]
pub(super) struct Packed {
    pub(super) bytes: Vec<u8>,
}

impl Packed {
    /// A value that is not there.
    pub(super) fn nil(&mut self) {
        self.bytes.push(0xc0);
    }

    /// A number in its shortest form.
    pub(super) fn uint(&mut self, value: u64) {
        match value {
            0..0x80 => self.bytes.push(value as u8),
            0x80..0x100 => self.tagged(0xcc, &[value as u8]),
            0x100..0x1_0000 => self.tagged(0xcd, &(value as u16).to_be_bytes()),
            0x1_0000..0x1_0000_0000 => self.tagged(0xce, &(value as u32).to_be_bytes()),
            _ => self.tagged(0xcf, &value.to_be_bytes()),
        }
    }

    pub(super) fn float(&mut self, value: f64) {
        self.tagged(0xcb, &value.to_be_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        match text.len() {
            length @ 0..32 => self.bytes.push(0xa0 | length as u8),
            length @ 32..0x100 => self.tagged(0xd9, &[length as u8]),
            length @ 0x100..0x1_0000 => self.tagged(0xda, &(length as u16).to_be_bytes()),
            length => self.tagged(0xdb, &(length as u32).to_be_bytes()),
        }
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// So many values follow.
    pub(super) fn list(&mut self, length: usize) {
        match length {
            0..16 => self.bytes.push(0x90 | length as u8),
            16..0x1_0000 => self.tagged(0xdc, &(length as u16).to_be_bytes()),
            _ => self.tagged(0xdd, &(length as u32).to_be_bytes()),
        }
    }

    /// So many pairs of a name and a value follow, at most 15.
    pub(super) fn map(&mut self, length: usize) {
        self.bytes.push(0x80 | length.min(15) as u8);
    }

    /// A list of numbers.
    pub(super) fn uints(&mut self, values: impl ExactSizeIterator<Item = u64>) {
        self.list(values.len());
        values.for_each(|value| self.uint(value));
    }

    fn tagged(&mut self, tag: u8, bytes: &[u8]) {
        self.bytes.push(tag);
        self.bytes.extend_from_slice(bytes);
    }
}
