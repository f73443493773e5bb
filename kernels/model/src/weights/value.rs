//! Metadata values: numbers by value, strings and arrays as checked byte ranges of the header.

mod kind;
mod reader;

use std::fmt;
use std::ops::Range;
use std::str::Utf8Error;

use super::bytes::Bytes;
use super::cursor::Cursor;
pub use kind::ValueKind;
pub(super) use reader::ValueReader;

/// A metadata value. Strings and arrays are views into the header and keep it in memory.
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
    /// Boolean.
    Bool(bool),
    /// String, not necessarily UTF-8.
    String(Text),
    /// Array of values of one type.
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

    /// Appends type and value, as in a file.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend((self.kind() as u32).to_le_bytes());
        match self {
            Value::U8(v) => out.push(*v),
            Value::I8(v) => out.extend(v.to_le_bytes()),
            Value::U16(v) => out.extend(v.to_le_bytes()),
            Value::I16(v) => out.extend(v.to_le_bytes()),
            Value::U32(v) => out.extend(v.to_le_bytes()),
            Value::I32(v) => out.extend(v.to_le_bytes()),
            Value::F32(v) => out.extend(v.to_le_bytes()),
            Value::F64(v) => out.extend(v.to_le_bytes()),
            Value::U64(v) => out.extend(v.to_le_bytes()),
            Value::I64(v) => out.extend(v.to_le_bytes()),
            Value::Bool(v) => out.push((*v).into()),
            Value::String(text) => {
                out.extend((text.range.len() as u64).to_le_bytes());
                out.extend_from_slice(text.as_bytes());
            }
            Value::Array(array) => {
                out.extend((array.kind as u32).to_le_bytes());
                out.extend((array.len as u64).to_le_bytes());
                out.extend_from_slice(&array.bytes[array.range.clone()]);
            }
        }
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        matches!(self, Value::Array(_))
    }

    /// Type as text; for an array, with element type and count.
    pub fn type_name(&self) -> String {
        match self {
            Value::Array(array) => format!("array of {} {}", array.len(), array.kind().name()),
            other => other.kind().name().to_owned(),
        }
    }

    /// The value of an integer of any width.
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

    /// The value of a number of any type.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Value::F32(v) => Some((*v).into()),
            Value::F64(v) => Some(*v),
            other => other.integer().map(|v| v as f64),
        }
    }

    /// The value of a float of either width; binary64 is rounded to binary32.
    pub(super) fn float(&self) -> Option<f32> {
        match self {
            Value::F32(v) => Some(*v),
            Value::F64(v) => Some(*v as f32),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    /// Scalars and strings in full (invalid UTF-8 as �), arrays as type and count.
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

/// A string, as a view into the header.
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
    /// [`Utf8Error`] if it is not UTF-8.
    pub fn to_str(&self) -> Result<&str, Utf8Error> {
        std::str::from_utf8(self.as_bytes())
    }
}

/// An array, as a view into the header whose lengths have all been checked.
#[derive(Clone)]
pub struct Array {
    bytes: Bytes,
    /// Bytes of the elements.
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

    /// The elements in order, each decoded on demand.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        let mut cursor = Cursor::new(&self.bytes[..self.range.end]);
        let mut skipped = cursor.skip(
            Some(self.range.start as u64),
            format_args!("array"),
            0,
            format_args!("the bytes before it"),
        );
        (0..self.len).map_while(move |i| {
            skipped.as_mut().ok()?;
            let reader = ValueReader { bytes: &self.bytes, field: format_args!("element {i}") };
            reader.value(&mut cursor, self.kind, 1).ok()
        })
    }

    /// Its first `len` elements, if their type is of one size: numbers or booleans. `None` for other types, or if it has fewer.
    pub fn first(&self, len: usize) -> Option<Array> {
        let (bytes, true) = self.kind.element_bytes() else { return None };
        let end = self.range.start + usize::try_from(bytes).ok()?.checked_mul(len)?;
        (len <= self.len).then(|| Array { range: self.range.start..end, len, ..self.clone() })
    }

    /// The elements of an array of strings, as bytes; empty for other element types.
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
