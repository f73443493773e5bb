//! Errors of files older than GGUF.

use std::io;
use std::path::{Path, PathBuf};

use super::format::LegacyVersion;
use crate::weights::{ReadFault, WeightError, WriteError};

/// The reason why a file older than GGUF cannot be read or converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LegacyError {
    /// The file cannot be opened or read, or a field is invalid.
    #[error(transparent)]
    File(#[from] WeightError),
    /// The contents of the named file are invalid.
    #[error("{}: {source}", path.display())]
    InFile {
        /// File.
        path: PathBuf,
        /// The error.
        source: Box<LegacyError>,
    },
    /// The first bytes are no magic number of these formats.
    #[error(
        "magic at byte 0 is {found:#010x}, which is none of GGML, GGMF and GGJT; give a llama file \
         older than GGUF"
    )]
    Magic {
        /// The number found.
        found: u32,
    },
    /// Unknown version.
    #[error("version at byte 4: version {found} of {format} is unknown; give a file of {known}")]
    Version {
        /// Name of the format.
        format: &'static str,
        /// Version in the file.
        found: u32,
        /// Versions that are known.
        known: &'static str,
    },
    /// A number format that this version of the file stores in a way that no longer exists.
    #[error(
        "tensor '{tensor}': type {id} at byte {offset} cannot be converted from {version}; F32, F16, \
         Q4_0, Q4_1 and Q8_0 can, from GGJT v2 on Q5_0 and Q5_1, and from GGJT v3 on Q4_K, Q5_K and \
         Q6_K; quantise the original model again"
    )]
    Type {
        /// Tensor name.
        tensor: String,
        /// Number of the type.
        id: u32,
        /// Byte offset of the type field.
        offset: u64,
        /// Version of the file.
        version: LegacyVersion,
    },
    /// A part of a model is not there.
    #[error(
        "part {part} of {parts} is missing: {}; get it, and put it beside the others",
        path.display()
    )]
    MissingPart {
        /// Number of the part, from 1.
        part: usize,
        /// Number of all parts.
        parts: usize,
        /// The file that it should be.
        path: PathBuf,
    },
    /// The number of parts is not that which the shapes tell.
    #[error("{found} parts of a model that is cut in {parts}; give all parts, in order")]
    Parts {
        /// Number of given parts.
        found: usize,
        /// Number of parts of the model.
        parts: usize,
    },
    /// A part does not belong to the first one.
    #[error(
        "this part of the model differs from the first one: {what}; get the parts of one model"
    )]
    PartDiffers {
        /// What differs.
        what: String,
    },
    /// A tensor that llama models do not have.
    #[error(
        "tensor '{tensor}' is not of the llama architecture, the only one that can be converted"
    )]
    UnknownTensor {
        /// Tensor name.
        tensor: String,
    },
    /// A tensor that llama models have.
    #[error(
        "tensor '{tensor}' is missing; the file is truncated or one of several parts, get a whole one"
    )]
    MissingTensor {
        /// Tensor name.
        tensor: String,
    },
    /// A tensor whose shape does not follow from the hyper-parameters.
    #[error(
        "tensor '{tensor}' has shape {found}, but needs {needed}; the file is corrupt, get it again"
    )]
    Shape {
        /// Tensor name.
        tensor: String,
        /// Shape in the file.
        found: String,
        /// Shape that the model needs.
        needed: String,
    },
    /// A hyper-parameter with an impossible value.
    #[error("{name} is {found}, but must be {needed}; the file is corrupt, get it again")]
    Param {
        /// Hyper-parameter.
        name: &'static str,
        /// Value.
        found: u32,
        /// Accepted values.
        needed: String,
    },
    /// A token that is not text.
    #[error("token {id} is not valid UTF-8; the file is corrupt, get it again")]
    Token {
        /// Token id.
        id: usize,
    },
    /// A scale that binary16 cannot hold.
    #[error(
        "tensor '{tensor}': the scale {scale} of a block does not fit in binary16; quantise the \
         original model again"
    )]
    Scale {
        /// Tensor name.
        tensor: String,
        /// The scale.
        scale: f32,
    },
    /// Data of a tensor cannot be read.
    #[error("cannot read tensor '{tensor}': {fault}")]
    Data {
        /// Tensor name.
        tensor: String,
        /// What is wrong.
        fault: ReadFault,
    },
    /// The GGUF file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<io::Error> for LegacyError {
    fn from(error: io::Error) -> LegacyError {
        WriteError::from(error).into()
    }
}

impl LegacyError {
    /// Adds the path of the file to the error.
    pub(super) fn in_file(self, path: &Path) -> LegacyError {
        LegacyError::InFile { path: path.to_owned(), source: Box::new(self) }
    }
}
