//! Writes GGUF version 3, little-endian.

use std::io::{self, Write};

use super::gguf::{ALIGNMENT, ALIGNMENT_KEY};
use super::tensor::Shape;
use super::value::ValueKind;
use crate::quant::DType;

/// A metadata value to write.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each variant is the value kind of its name")]
pub enum MetaValue {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    String(String),
    Strings(Vec<String>),
    U32s(Vec<u32>),
    I32s(Vec<i32>),
    F32s(Vec<f32>),
    Bools(Vec<bool>),
}

macro_rules! from {
    ($($source:ty => $variant:ident),* $(,)?) => {
        $(impl From<$source> for MetaValue {
            fn from(value: $source) -> MetaValue {
                MetaValue::$variant(value.into())
            }
        })*
    };
}

from! {
    u32 => U32, i32 => I32, u64 => U64, f32 => F32, bool => Bool, &str => String,
    String => String, Vec<String> => Strings, Vec<u32> => U32s, Vec<i32> => I32s,
    Vec<f32> => F32s, Vec<bool> => Bools,
}

/// The reason why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Writing to the output failed.
    #[error("cannot write the weight file: {0}; check the free disk space")]
    Io(#[from] io::Error),
    /// A tensor's shape is not possible in its format.
    #[error("tensor '{tensor}' of shape {shape:?} cannot be stored as {dtype}; use 1 to 4 non-zero dimensions, the first a multiple of {}", dtype.block_len())]
    Shape {
        /// Tensor name.
        tensor: String,
        /// Dimensions.
        shape: Vec<usize>,
        /// Format.
        dtype: DType,
    },
    /// The size of a tensor's data does not match its shape and format.
    #[error("tensor '{tensor}' has {found} bytes, but its shape and format need {expected}")]
    Bytes {
        /// Tensor name.
        tensor: String,
        /// Bytes given.
        found: usize,
        /// Bytes that shape and format need.
        expected: usize,
    },
    /// `general.alignment` is not a u32 that is a power of two.
    #[error("general.alignment must be a u32 and a power of two, but is {found:?}")]
    Alignment {
        /// Value given.
        found: MetaValue,
    },
}

/// Collects metadata and tensors and writes them as a GGUF file.
#[derive(Clone, Debug, Default)]
pub struct GgufWriter {
    meta: Vec<(String, MetaValue)>,
    tensors: Vec<Tensor>,
}

#[derive(Clone, Debug)]
struct Tensor {
    name: String,
    shape: Vec<usize>,
    dtype: DType,
    bytes: Vec<u8>,
}

impl GgufWriter {
    /// An empty file.
    pub fn new() -> GgufWriter {
        GgufWriter::default()
    }

    /// Appends a key-value pair.
    pub fn meta(&mut self, key: &str, value: impl Into<MetaValue>) -> &mut GgufWriter {
        self.meta.push((key.to_owned(), value.into()));
        self
    }

    /// Appends a tensor; `shape[0]` is the number of columns.
    pub fn tensor(
        &mut self,
        name: &str,
        shape: &[usize],
        dtype: DType,
        bytes: impl Into<Vec<u8>>,
    ) -> &mut GgufWriter {
        let (name, shape, bytes) = (name.to_owned(), shape.to_owned(), bytes.into());
        self.tensors.push(Tensor { name, shape, dtype, bytes });
        self
    }

    /// Writes the file.
    ///
    /// # Errors
    /// [`WriteError`]: a tensor's size does not match its shape, the alignment is invalid, or the
    /// output fails.
    pub fn write_to(&self, out: &mut impl Write) -> Result<(), WriteError> {
        let alignment = self.alignment()?;
        let mut head = Vec::from(*b"GGUF");
        put(&mut head, &3u32.to_le_bytes());
        put(&mut head, &(self.tensors.len() as u64).to_le_bytes());
        put(&mut head, &(self.meta.len() as u64).to_le_bytes());
        for (key, value) in &self.meta {
            put_string(&mut head, key);
            put_value(&mut head, value);
        }
        let mut offset = 0;
        for tensor in &self.tensors {
            tensor.check()?;
            put_string(&mut head, &tensor.name);
            put(&mut head, &(tensor.shape.len() as u32).to_le_bytes());
            for dim in &tensor.shape {
                put(&mut head, &(*dim as u64).to_le_bytes());
            }
            put(&mut head, &tensor.dtype.gguf_id().to_le_bytes());
            put(&mut head, &(offset as u64).to_le_bytes());
            offset = (offset + tensor.bytes.len()).next_multiple_of(alignment);
        }
        write_padded(out, &head, alignment)?;
        for tensor in &self.tensors {
            write_padded(out, &tensor.bytes, alignment)?;
        }
        Ok(())
    }

    fn alignment(&self) -> Result<usize, WriteError> {
        match self.meta.iter().find(|(key, _)| key == ALIGNMENT_KEY) {
            None => Ok(ALIGNMENT as usize),
            Some((_, MetaValue::U32(v))) if v.is_power_of_two() => Ok(*v as usize),
            Some((_, found)) => Err(WriteError::Alignment { found: found.clone() }),
        }
    }
}

impl Tensor {
    fn check(&self) -> Result<(), WriteError> {
        let expected = Shape::new(&self.shape).and_then(|shape| {
            self.dtype.row_bytes(shape.cols()).and_then(|row| row.checked_mul(shape.rows()))
        });
        match expected {
            None => Err(WriteError::Shape {
                tensor: self.name.clone(),
                shape: self.shape.clone(),
                dtype: self.dtype,
            }),
            Some(expected) if expected != self.bytes.len() => {
                let found = self.bytes.len();
                Err(WriteError::Bytes { tensor: self.name.clone(), found, expected })
            }
            Some(_) => Ok(()),
        }
    }
}

fn write_padded(out: &mut impl Write, bytes: &[u8], alignment: usize) -> io::Result<()> {
    out.write_all(bytes)?;
    let padding = bytes.len().next_multiple_of(alignment) - bytes.len();
    io::copy(&mut io::Read::take(io::repeat(0), padding as u64), out).map(|_| ())
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    put(out, &(text.len() as u64).to_le_bytes());
    put(out, text.as_bytes());
}

fn put_kind(out: &mut Vec<u8>, kind: ValueKind) {
    put(out, &(kind as u32).to_le_bytes());
}

fn put_array<T>(out: &mut Vec<u8>, kind: ValueKind, values: &[T], one: impl Fn(&mut Vec<u8>, &T)) {
    put_kind(out, ValueKind::Array);
    put_kind(out, kind);
    put(out, &(values.len() as u64).to_le_bytes());
    for value in values {
        one(out, value);
    }
}

fn put_scalar(out: &mut Vec<u8>, kind: ValueKind, bytes: &[u8]) {
    put_kind(out, kind);
    put(out, bytes);
}

fn put_value(out: &mut Vec<u8>, value: &MetaValue) {
    match value {
        MetaValue::U8(v) => put_scalar(out, ValueKind::U8, &v.to_le_bytes()),
        MetaValue::I8(v) => put_scalar(out, ValueKind::I8, &v.to_le_bytes()),
        MetaValue::U16(v) => put_scalar(out, ValueKind::U16, &v.to_le_bytes()),
        MetaValue::I16(v) => put_scalar(out, ValueKind::I16, &v.to_le_bytes()),
        MetaValue::U32(v) => put_scalar(out, ValueKind::U32, &v.to_le_bytes()),
        MetaValue::I32(v) => put_scalar(out, ValueKind::I32, &v.to_le_bytes()),
        MetaValue::U64(v) => put_scalar(out, ValueKind::U64, &v.to_le_bytes()),
        MetaValue::I64(v) => put_scalar(out, ValueKind::I64, &v.to_le_bytes()),
        MetaValue::F32(v) => put_scalar(out, ValueKind::F32, &v.to_le_bytes()),
        MetaValue::F64(v) => put_scalar(out, ValueKind::F64, &v.to_le_bytes()),
        MetaValue::Bool(v) => put_scalar(out, ValueKind::Bool, &[(*v).into()]),
        MetaValue::String(v) => {
            put_kind(out, ValueKind::String);
            put_string(out, v);
        }
        MetaValue::Strings(v) => {
            put_array(out, ValueKind::String, v, |out, s| put_string(out, s));
        }
        MetaValue::U32s(v) => {
            put_array(out, ValueKind::U32, v, |out, n| put(out, &n.to_le_bytes()));
        }
        MetaValue::I32s(v) => {
            put_array(out, ValueKind::I32, v, |out, n| put(out, &n.to_le_bytes()));
        }
        MetaValue::F32s(v) => {
            put_array(out, ValueKind::F32, v, |out, n| put(out, &n.to_le_bytes()));
        }
        MetaValue::Bools(v) => {
            put_array(out, ValueKind::Bool, v, |out, b| put(out, &[(*b).into()]));
        }
    }
}
