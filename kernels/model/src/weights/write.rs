//! Writes GGUF version 3, little-endian.

pub(super) mod values;
mod zeros;

use std::io::{self, Write};

use super::gguf::{ALIGNMENT, ALIGNMENT_KEY};
use super::tensor::Shape;
use super::value::Value;
use crate::formats::DType;
use values::{put, put_string, put_value};

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
    meta: Vec<(String, Entry)>,
    tensors: Vec<Tensor>,
}

/// A value to write: a new one, or one of another file.
#[derive(Clone, Debug)]
enum Entry {
    New(MetaValue),
    Read(Value),
}

#[derive(Clone, Debug)]
struct Tensor {
    name: String,
    shape: Vec<usize>,
    dtype: DType,
    /// `None`: given when the file is written.
    bytes: Option<Vec<u8>>,
}

impl GgufWriter {
    /// An empty file.
    pub fn new() -> GgufWriter {
        GgufWriter::default()
    }

    /// Appends a key-value pair.
    pub fn meta(&mut self, key: &str, value: impl Into<MetaValue>) -> &mut GgufWriter {
        self.meta.push((key.to_owned(), Entry::New(value.into())));
        self
    }

    /// Appends a key and a value of another file.
    pub fn meta_of(&mut self, key: &str, value: &Value) -> &mut GgufWriter {
        self.meta.push((key.to_owned(), Entry::Read(value.clone())));
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
        let (name, shape, bytes) = (name.to_owned(), shape.to_owned(), Some(bytes.into()));
        self.tensors.push(Tensor { name, shape, dtype, bytes });
        self
    }

    /// Appends a tensor whose data are given to [`write_with`](GgufWriter::write_with).
    pub fn tensor_later(&mut self, name: &str, shape: &[usize], dtype: DType) -> &mut GgufWriter {
        let (name, shape) = (name.to_owned(), shape.to_owned());
        self.tensors.push(Tensor { name, shape, dtype, bytes: None });
        self
    }

    /// Writes the file.
    ///
    /// # Errors
    /// [`WriteError`]: a tensor's size does not match its shape, the alignment is invalid, a tensor has
    /// no data, or the output fails.
    pub fn write_to(&self, out: &mut impl Write) -> Result<(), WriteError> {
        self.write_with(out, |_, _| Ok(()))
    }

    /// Writes the file. `data` writes the data of a tensor of
    /// [`tensor_later`](GgufWriter::tensor_later), by its index among all tensors, in order; so only a
    /// part of one tensor needs to be in memory.
    ///
    /// # Errors
    /// As [`write_to`](GgufWriter::write_to), and those of `data`.
    pub fn write_with<E: From<WriteError>>(
        &self,
        out: &mut impl Write,
        mut data: impl FnMut(usize, &mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        let alignment = self.alignment()?;
        let head = self.head(alignment)?;
        write_padded(out, &head, alignment).map_err(WriteError::from)?;
        for (index, tensor) in self.tensors.iter().enumerate() {
            let expected = tensor.expected()?;
            let mut counted = Counted { out: &mut *out, bytes: 0 };
            match &tensor.bytes {
                Some(bytes) => counted.write_all(bytes).map_err(WriteError::from)?,
                None => data(index, &mut counted)?,
            }
            let found = counted.bytes;
            if found != expected {
                let tensor = tensor.name.clone();
                return Err(WriteError::Bytes { tensor, found, expected }.into());
            }
            pad(out, expected, alignment).map_err(WriteError::from)?;
        }
        Ok(())
    }

    /// Everything that precedes the tensor data.
    fn head(&self, alignment: usize) -> Result<Vec<u8>, WriteError> {
        let mut head = Vec::from(*b"GGUF");
        put(&mut head, &3u32.to_le_bytes());
        put(&mut head, &(self.tensors.len() as u64).to_le_bytes());
        put(&mut head, &(self.meta.len() as u64).to_le_bytes());
        for (key, value) in &self.meta {
            put_string(&mut head, key);
            match value {
                Entry::New(value) => put_value(&mut head, value),
                Entry::Read(value) => value.put(&mut head),
            }
        }
        let mut offset = 0;
        for tensor in &self.tensors {
            let bytes = tensor.expected()?;
            put_string(&mut head, &tensor.name);
            put(&mut head, &(tensor.shape.len() as u32).to_le_bytes());
            for dim in &tensor.shape {
                put(&mut head, &(*dim as u64).to_le_bytes());
            }
            put(&mut head, &tensor.dtype.gguf_id().to_le_bytes());
            put(&mut head, &(offset as u64).to_le_bytes());
            offset = (offset + bytes).next_multiple_of(alignment);
        }
        Ok(head)
    }

    fn alignment(&self) -> Result<usize, WriteError> {
        let found = match self.meta.iter().find(|(key, _)| key == ALIGNMENT_KEY) {
            None => return Ok(ALIGNMENT as usize),
            Some((_, Entry::New(MetaValue::U32(v)) | Entry::Read(Value::U32(v))))
                if v.is_power_of_two() =>
            {
                return Ok(*v as usize);
            }
            Some((_, Entry::New(found))) => found.clone(),
            Some((_, Entry::Read(found))) => MetaValue::String(found.to_string()),
        };
        Err(WriteError::Alignment { found })
    }
}

impl Tensor {
    /// Bytes of the data. Data that are here already must have as many.
    fn expected(&self) -> Result<usize, WriteError> {
        let expected = Shape::new(&self.shape).and_then(|shape| {
            self.dtype.row_bytes(shape.cols()).and_then(|row| row.checked_mul(shape.rows()))
        });
        let expected = expected.ok_or_else(|| WriteError::Shape {
            tensor: self.name.clone(),
            shape: self.shape.clone(),
            dtype: self.dtype,
        })?;
        match self.bytes.as_ref().map(Vec::len).filter(|found| *found != expected) {
            Some(found) => Err(WriteError::Bytes { tensor: self.name.clone(), found, expected }),
            None => Ok(expected),
        }
    }
}

/// Counts the bytes that are written.
struct Counted<'a, W> {
    out: &'a mut W,
    bytes: usize,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn write_padded(out: &mut impl Write, bytes: &[u8], alignment: usize) -> io::Result<()> {
    out.write_all(bytes)?;
    pad(out, bytes.len(), alignment)
}

/// Writes zeros after `bytes` bytes, up to the alignment.
fn pad(out: &mut impl Write, bytes: usize, alignment: usize) -> io::Result<()> {
    let padding = bytes.next_multiple_of(alignment) - bytes;
    io::copy(&mut io::Read::take(io::repeat(0), padding as u64), out).map(|_| ())
}
