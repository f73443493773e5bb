//! Reads metadata values. Every length is checked before the bytes that it covers are read.

use std::fmt;

use super::{Array, Text, Value, ValueKind};
use crate::weights::bytes::Bytes;
use crate::weights::cursor::{Cursor, bad};
use crate::weights::error::{Fault, WeightError};

/// Maximum nesting depth of arrays.
const DEPTH_MAX: usize = 4;

/// Reads the value of one metadata key.
pub(in crate::weights) struct ValueReader<'a> {
    pub(in crate::weights) bytes: &'a Bytes,
    /// Description of the key, for errors.
    pub(in crate::weights) field: fmt::Arguments<'a>,
}

impl ValueReader<'_> {
    /// Reads a type number and the value after it.
    pub(in crate::weights) fn typed(&self, cursor: &mut Cursor<'_>) -> Result<Value, WeightError> {
        let kind = self.kind(cursor, "value type")?;
        self.value(cursor, kind, 0)
    }

    fn kind(&self, cursor: &mut Cursor<'_>, what: &str) -> Result<ValueKind, WeightError> {
        let (field, offset) = (self.field, cursor.at());
        let id = cursor.u32(format_args!("{field}: {what}"))?;
        ValueKind::from_gguf(id).ok_or_else(|| {
            let expected = "a value type (0 to 12)";
            let fault = Fault::Unknown { found: id.into(), expected };
            bad(format_args!("{field}: {what}"), offset, fault)
        })
    }

    pub(super) fn value(
        &self,
        cursor: &mut Cursor<'_>,
        kind: ValueKind,
        depth: usize,
    ) -> Result<Value, WeightError> {
        let field = self.field;
        Ok(match kind {
            ValueKind::U8 => Value::U8(u8::from_le_bytes(cursor.array(field)?)),
            ValueKind::I8 => Value::I8(i8::from_le_bytes(cursor.array(field)?)),
            ValueKind::U16 => Value::U16(u16::from_le_bytes(cursor.array(field)?)),
            ValueKind::I16 => Value::I16(i16::from_le_bytes(cursor.array(field)?)),
            ValueKind::U32 => Value::U32(u32::from_le_bytes(cursor.array(field)?)),
            ValueKind::I32 => Value::I32(i32::from_le_bytes(cursor.array(field)?)),
            ValueKind::U64 => Value::U64(u64::from_le_bytes(cursor.array(field)?)),
            ValueKind::I64 => Value::I64(i64::from_le_bytes(cursor.array(field)?)),
            ValueKind::F32 => Value::F32(f32::from_le_bytes(cursor.array(field)?)),
            ValueKind::F64 => Value::F64(f64::from_le_bytes(cursor.array(field)?)),
            ValueKind::Bool => {
                let offset = cursor.at();
                let byte = u8::from_le_bytes(cursor.array(field)?);
                Value::Bool(self.bool(byte, offset)?)
            }
            ValueKind::String => {
                Value::String(Text { bytes: self.bytes.clone(), range: cursor.string(field)? })
            }
            ValueKind::Array => Value::Array(self.array(cursor, depth + 1)?),
        })
    }

    fn bool(&self, byte: u8, offset: usize) -> Result<bool, WeightError> {
        match byte {
            0 | 1 => Ok(byte == 1),
            _ => {
                let fault = Fault::Unknown { found: byte.into(), expected: "a bool (0 or 1)" };
                Err(bad(self.field, offset, fault))
            }
        }
    }

    /// Reads element type and count, then checks and skips the elements.
    fn array(&self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Array, WeightError> {
        let field = self.field;
        if depth > DEPTH_MAX {
            return Err(bad(field, cursor.at(), Fault::TooDeep { limit: DEPTH_MAX }));
        }
        let kind = self.kind(cursor, "array element type")?;
        let offset = cursor.at();
        let count = cursor.u64(format_args!("{field}: array length"))?;
        let what = format_args!("array of {count} {}s", kind.name());
        let (element, fixed) = kind.element_bytes();
        let least = count.checked_mul(element);
        let start = cursor.at();
        if fixed {
            let range = cursor.skip(least, field, offset, what)?;
            if kind == ValueKind::Bool {
                self.check_bools(cursor.bytes(range), start)?;
            }
        } else {
            if least.is_none_or(|least| least > cursor.left()) {
                let fault = Fault::PastEnd { what: what.to_string(), left: cursor.left() };
                return Err(bad(field, offset, fault));
            }
            for i in 0..count {
                if kind == ValueKind::String {
                    cursor.string(format_args!("{field}, element {i}"))?;
                } else {
                    self.array(cursor, depth + 1)?;
                }
            }
        }
        let range = start..cursor.at();
        Ok(Array { bytes: self.bytes.clone(), range, kind, len: count as usize })
    }

    fn check_bools(&self, bytes: &[u8], start: usize) -> Result<(), WeightError> {
        for (i, byte) in bytes.iter().enumerate() {
            self.bool(*byte, start + i)?;
        }
        Ok(())
    }
}
