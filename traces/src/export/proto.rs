//! Encodes protocol buffers (wire format only).

/// A message being encoded. The caller supplies the field numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Proto(pub(super) Vec<u8>);

impl Proto {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    /// Adds an unsigned number, an enum value or a boolean.
    pub(super) fn uint(&mut self, field: u32, value: u64) -> &mut Proto {
        self.key(field, 0);
        self.varint(value);
        self
    }

    /// Adds a signed number (`int64`, `int32`).
    pub(super) fn int(&mut self, field: u32, value: i64) -> &mut Proto {
        self.uint(field, value.cast_unsigned())
    }

    /// Adds a `fixed64`.
    pub(super) fn fixed(&mut self, field: u32, value: u64) -> &mut Proto {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Adds text or bytes.
    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Proto {
        self.key(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// Adds a nested message.
    pub(super) fn message(&mut self, field: u32, inner: &Proto) -> &mut Proto {
        self.bytes(field, &inner.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_as_the_wire_format_specifies() {
        let mut inner = Proto::default();
        inner.uint(1, 150);
        let mut outer = Proto::default();
        outer.message(3, &inner).bytes(2, b"testing").int(4, -1).fixed(48, 1);
        let expected = [
            &[0x1a, 3, 0x08, 0x96, 0x01][..],
            &[0x12, 7],
            b"testing",
            &[0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x81, 0x03, 1, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(outer.0, expected.concat());
    }
}
