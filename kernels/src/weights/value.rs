//! Metadata values: numbers by value, strings and arrays as checked ranges of the file.

use std::fmt;
use std::ops::Range;
use std::str::Utf8Error;

use super::cursor::{Cursor, bad};
use super::error::{Fault, WeightError};
use super::map::Bytes;

/// Deepest nesting of arrays accepted.
pub(super) const DEPTH_MAX: usize = 4;

/// Type of a metadata value, with the numbers of the GGUF specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ValueKind {
    /// Unsigned, 8 bits.
    U8 = 0,
    /// Signed, 8 bits.
    I8 = 1,
    /// Unsigned, 16 bits.
    U16 = 2,
    /// Signed, 16 bits.
    I16 = 3,
    /// Unsigned, 32 bits.
    U32 = 4,
    /// Signed, 32 bits.
    I32 = 5,
    /// IEEE 754 binary32.
    F32 = 6,
    /// One byte, 0 or 1.
    Bool = 7,
    /// Length and bytes.
    String = 8,
    /// Type, count and elements.
    Array = 9,
    /// Unsigned, 64 bits.
    U64 = 10,
    /// Signed, 64 bits.
    I64 = 11,
    /// IEEE 754 binary64.
    F64 = 12,
}

impl ValueKind {
    const ALL: [ValueKind; 13] = [
        ValueKind::U8,
        ValueKind::I8,
        ValueKind::U16,
        ValueKind::I16,
        ValueKind::U32,
        ValueKind::I32,
        ValueKind::F32,
        ValueKind::Bool,
        ValueKind::String,
        ValueKind::Array,
        ValueKind::U64,
        ValueKind::I64,
        ValueKind::F64,
    ];

    fn from_gguf(id: u32) -> Option<ValueKind> {
        ValueKind::ALL.get(id as usize).copied()
    }

    /// Name of the type.
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::U8 => "u8",
            ValueKind::I8 => "i8",
            ValueKind::U16 => "u16",
            ValueKind::I16 => "i16",
            ValueKind::U32 => "u32",
            ValueKind::I32 => "i32",
            ValueKind::F32 => "f32",
            ValueKind::Bool => "bool",
            ValueKind::String => "string",
            ValueKind::Array => "array",
            ValueKind::U64 => "u64",
            ValueKind::I64 => "i64",
            ValueKind::F64 => "f64",
        }
    }

    /// Fewest bytes that an element takes, and whether all take just as many.
    fn element_bytes(self) -> (u64, bool) {
        match self {
            ValueKind::U8 | ValueKind::I8 | ValueKind::Bool => (1, true),
            ValueKind::U16 | ValueKind::I16 => (2, true),
            ValueKind::U32 | ValueKind::I32 | ValueKind::F32 => (4, true),
            ValueKind::U64 | ValueKind::I64 | ValueKind::F64 => (8, true),
            ValueKind::String => (8, false),
            ValueKind::Array => (12, false),
        }
    }
}

/// A metadata value. Strings and arrays are views into the file, which they keep mapped.
#[derive(Clone)]
pub enum Value {
    /// Unsigned, 8 bits.
    U8(u8),
    /// Signed, 8 bits.
    I8(i8),
    /// Unsigned, 16 bits.
    U16(u16),
    /// Signed, 16 bits.
    I16(i16),
    /// Unsigned, 32 bits.
    U32(u32),
    /// Signed, 32 bits.
    I32(i32),
    /// IEEE 754 binary32.
    F32(f32),
    /// IEEE 754 binary64.
    F64(f64),
    /// Unsigned, 64 bits.
    U64(u64),
    /// Signed, 64 bits.
    I64(i64),
    /// Truth value.
    Bool(bool),
    /// String, perhaps not UTF-8.
    String(Text),
    /// Values of one type.
    Array(Array),
}

impl Value {
    /// Type of the value.
    pub fn kind(&self) -> ValueKind {
        match self {
            Value::U8(_) => ValueKind::U8,
            Value::I8(_) => ValueKind::I8,
            Value::U16(_) => ValueKind::U16,
            Value::I16(_) => ValueKind::I16,
            Value::U32(_) => ValueKind::U32,
            Value::I32(_) => ValueKind::I32,
            Value::F32(_) => ValueKind::F32,
            Value::F64(_) => ValueKind::F64,
            Value::U64(_) => ValueKind::U64,
            Value::I64(_) => ValueKind::I64,
            Value::Bool(_) => ValueKind::Bool,
            Value::String(_) => ValueKind::String,
            Value::Array(_) => ValueKind::Array,
        }
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        matches!(self, Value::Array(_))
    }

    /// Type in words, with element type and count of an array.
    pub fn type_name(&self) -> String {
        match self {
            Value::Array(array) => format!("array of {} {}", array.len(), array.kind().name()),
            other => other.kind().name().to_owned(),
        }
    }

    /// An integer of any width.
    pub(super) fn integer(&self) -> Option<i128> {
        Some(match self {
            Value::U8(v) => (*v).into(),
            Value::I8(v) => (*v).into(),
            Value::U16(v) => (*v).into(),
            Value::I16(v) => (*v).into(),
            Value::U32(v) => (*v).into(),
            Value::I32(v) => (*v).into(),
            Value::U64(v) => (*v).into(),
            Value::I64(v) => (*v).into(),
            _ => return None,
        })
    }

    /// A floating-point number of either width; binary64 is rounded.
    pub(super) fn float(&self) -> Option<f32> {
        match self {
            Value::F32(v) => Some(*v),
            Value::F64(v) => Some(*v as f32),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    /// Scalars and strings in full (bytes that are not UTF-8 as �), arrays as type and count.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::F32(v) => v.fmt(f),
            Value::F64(v) => v.fmt(f),
            Value::Bool(v) => v.fmt(f),
            Value::String(v) => f.write_str(&String::from_utf8_lossy(v.as_bytes())),
            Value::Array(_) => f.write_str(&self.type_name()),
            other => other.integer().unwrap_or_default().fmt(f),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({self})", self.kind().name())
    }
}

/// A string inside the file.
#[derive(Clone)]
pub struct Text {
    bytes: Bytes,
    range: Range<usize>,
}

impl Text {
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }

    /// The string.
    ///
    /// # Errors
    /// [`Utf8Error`] when it is not UTF-8.
    pub fn to_str(&self) -> Result<&str, Utf8Error> {
        std::str::from_utf8(self.as_bytes())
    }
}

/// An array inside the file, checked to its end.
#[derive(Clone)]
pub struct Array {
    bytes: Bytes,
    /// The elements.
    range: Range<usize>,
    kind: ValueKind,
    len: usize,
}

impl Array {
    /// Type of the elements.
    pub fn kind(&self) -> ValueKind {
        self.kind
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements in order, each read when it is asked for.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        let mut cursor = Cursor::new(&self.bytes[..self.range.end]);
        let mut place = cursor.skip(
            Some(self.range.start as u64),
            format_args!("array"),
            0,
            format_args!("what is before it"),
        );
        (0..self.len).map_while(move |i| {
            place.as_mut().ok()?;
            let reader = ValueReader { bytes: &self.bytes, field: format_args!("element {i}") };
            reader.value(&mut cursor, self.kind, 1).ok()
        })
    }

    /// The elements of an array of strings, as bytes; empty for another element type.
    pub(super) fn strings(&self) -> Strings<'_> {
        let len = if self.kind == ValueKind::String { self.len } else { 0 };
        Strings { rest: &self.bytes[self.range.clone()], len }
    }
}

/// Strings of an array, in order, without copies.
#[derive(Clone)]
pub(super) struct Strings<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.len = self.len.checked_sub(1)?;
        let (len, rest) = self.rest.split_first_chunk::<8>()?;
        let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
        let (text, rest) = rest.split_at_checked(len)?;
        self.rest = rest;
        Some(text)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl ExactSizeIterator for Strings<'_> {}

/// Reads values of one metadata key.
pub(super) struct ValueReader<'a> {
    pub(super) bytes: &'a Bytes,
    /// The key, for errors.
    pub(super) field: fmt::Arguments<'a>,
}

impl ValueReader<'_> {
    /// A type number and the value behind it.
    pub(super) fn typed(&self, cursor: &mut Cursor<'_>) -> Result<Value, WeightError> {
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

    fn value(
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
                Value::Bool(self.truth(byte, offset)?)
            }
            ValueKind::String => {
                Value::String(Text { bytes: self.bytes.clone(), range: cursor.string(field)? })
            }
            ValueKind::Array => Value::Array(self.array(cursor, depth + 1)?),
        })
    }

    fn truth(&self, byte: u8, offset: usize) -> Result<bool, WeightError> {
        match byte {
            0 | 1 => Ok(byte == 1),
            _ => {
                let fault = Fault::Unknown { found: byte.into(), expected: "a bool (0 or 1)" };
                Err(bad(self.field, offset, fault))
            }
        }
    }

    /// Element type, count, and elements, which are stepped over and checked.
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
                self.truths(cursor.bytes(range), start)?;
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

    fn truths(&self, bytes: &[u8], start: usize) -> Result<(), WeightError> {
        for (i, byte) in bytes.iter().enumerate() {
            self.truth(*byte, start + i)?;
        }
        Ok(())
    }
}
