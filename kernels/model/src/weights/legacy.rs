//! Weight files older than GGUF, of the llama architecture: GGML, GGMF and GGJT.
//! Source: the reader `llama.cpp` and the block layouts in `ggml.c` of llama.cpp, May 2023; for models in
//! several parts, the reader of March 2023.

mod error;
mod format;
mod model;
mod names;
mod parts;
mod read;
mod source;
mod vocabulary;

use std::io::Write;
use std::path::Path;

pub use error::LegacyError;
pub use format::LegacyVersion;
pub use model::{LegacyOptions, LegacyParams};

use super::data_file::DataFile;
use super::tensor::Shape;
use super::write::GgufWriter;
use crate::formats::DType;
use format::Layout;
use names::Cut;
use source::Source;
use vocabulary::Piece;

/// An open file older than GGUF, or all parts of a model in several. Tensor data are read on demand.
#[derive(Debug)]
pub struct LegacyFile {
    /// One for each part.
    sources: Vec<Source>,
    version: LegacyVersion,
    params: LegacyParams,
    pieces: Vec<Piece>,
    tensors: Vec<LegacyTensor>,
}

/// A tensor of a file older than GGUF.
#[derive(Debug)]
pub struct LegacyTensor {
    /// Name in the file, as `layers.0.attention.wq.weight`.
    pub name: String,
    /// Dimensions, of all parts together.
    pub shape: Shape,
    layout: Layout,
    /// How it is cut into parts.
    cut: Cut,
    /// Byte offset of the data in each part.
    starts: Vec<u64>,
}

impl LegacyTensor {
    /// Format of the tensor in GGUF; its blocks in this file may be laid out in another way.
    pub fn dtype(&self) -> DType {
        self.layout.dtype
    }

    /// Whether the blocks are copied to GGUF as they are.
    pub fn is_copied(&self) -> bool {
        self.layout.is_current()
    }
}

impl LegacyFile {
    /// Whether a file begins with a magic number of these formats. A file that cannot be read does not.
    pub fn is_legacy(path: &Path) -> bool {
        let Ok(file) = DataFile::open(path) else { return false };
        let mut magic = [0; 4];
        file.read(0, &mut magic).is_ok() && LegacyVersion::has_magic(u32::from_le_bytes(magic))
    }

    /// Opens a file and, if it is part of a model (`NAME`, `NAME.1`, `NAME.2`, …), all other parts. Reads
    /// everything but the tensor data.
    ///
    /// # Errors
    /// [`LegacyError`] names the file, and the invalid field with its byte offset, or the part that is
    /// missing or differs from the first.
    pub fn open(path: &Path) -> Result<LegacyFile, LegacyError> {
        parts::open(path)
    }

    /// As [`open`](LegacyFile::open), for the bytes of a file in memory.
    ///
    /// # Errors
    /// [`LegacyError`] names the invalid field with its byte offset.
    pub fn parse(bytes: Vec<u8>) -> Result<LegacyFile, LegacyError> {
        LegacyFile::parse_parts(vec![bytes])
    }

    /// As [`parse`](LegacyFile::parse), for the bytes of all parts of a model, in order.
    ///
    /// # Errors
    /// As [`open`](LegacyFile::open).
    pub fn parse_parts(parts: Vec<Vec<u8>>) -> Result<LegacyFile, LegacyError> {
        let read = parts.into_iter().map(|bytes| read::file(Source::Bytes(bytes)));
        parts::merge(read.collect::<Result<_, _>>()?).map_err(|(_, error)| error)
    }

    /// Format and version.
    pub fn version(&self) -> LegacyVersion {
        self.version
    }

    /// Hyper-parameters.
    pub fn params(&self) -> &LegacyParams {
        &self.params
    }

    /// Tensors in file order.
    pub fn tensors(&self) -> &[LegacyTensor] {
        &self.tensors
    }

    /// The model as a GGUF file without data: metadata, vocabulary and tensor table. Tensors are in
    /// file order, under the names of GGUF. The rotary layout (adjacent pairs) is the same in both, so
    /// no row of Q or K moves.
    ///
    /// # Errors
    /// [`LegacyError`] if a tensor is missing, unknown or has another shape than the model needs, or
    /// if a token is not text.
    pub fn to_gguf(&self, options: &LegacyOptions) -> Result<GgufWriter, LegacyError> {
        model::to_gguf(self, options)
    }

    /// Writes the data of a tensor, by index, with today's blocks. Scales in binary32 are rounded to
    /// binary16, the only loss.
    ///
    /// # Errors
    /// [`LegacyError`] if the file has become shorter, a scale does not fit in binary16, or the output
    /// fails.
    ///
    /// # Panics
    /// When `index` is not below the number of tensors.
    pub fn write_tensor(&self, index: usize, out: &mut dyn Write) -> Result<(), LegacyError> {
        let tensor = &self.tensors[index];
        let blocks = tensor.shape.len() / tensor.layout.dtype.block_len();
        // Consecutive blocks of a part: of a tensor that is cut by columns, those of a row.
        let (parts, runs) = match tensor.cut {
            Cut::None => (1, 1),
            Cut::Rows => (self.sources.len(), 1),
            Cut::Columns => (self.sources.len(), tensor.shape.rows()),
        };
        let run = blocks / parts / runs;
        let mut writer = BlockWriter { tensor, old: Vec::new(), new: Vec::new(), out };
        for at in 0..runs {
            let skipped = (at * run * tensor.layout.block_bytes()) as u64;
            for part in 0..parts {
                writer.write(&self.sources[part], tensor.starts[part] + skipped, run)?;
            }
        }
        Ok(())
    }
}

/// Writes blocks of a tensor as they are today.
struct BlockWriter<'a> {
    tensor: &'a LegacyTensor,
    /// Blocks as they were.
    old: Vec<u8>,
    /// The same, converted.
    new: Vec<u8>,
    out: &'a mut dyn Write,
}

impl BlockWriter<'_> {
    /// Writes consecutive blocks from byte `at` of a part on.
    fn write(&mut self, part: &Source, mut at: u64, mut blocks: usize) -> Result<(), LegacyError> {
        let BlockWriter { tensor, old, new, out } = self;
        let (layout, name) = (tensor.layout, || tensor.name.clone());
        while blocks > 0 {
            let now = blocks.min(CHUNK_BLOCKS);
            old.resize(now * layout.block_bytes(), 0);
            let read = part.read(at, old);
            read.map_err(|fault| LegacyError::Data { tensor: name(), fault })?;
            match layout.is_current() {
                true => out.write_all(old)?,
                false => {
                    new.clear();
                    let written = layout.to_current(old, new);
                    written.map_err(|scale| LegacyError::Scale { tensor: name(), scale })?;
                    out.write_all(new)?;
                }
            }
            at += old.len() as u64;
            blocks -= now;
        }
        Ok(())
    }
}

/// Blocks that are converted at once.
const CHUNK_BLOCKS: usize = 4096;
