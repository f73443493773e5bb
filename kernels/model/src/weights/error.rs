//! Errors of opening a weight file.

use std::io;
use std::path::PathBuf;

use super::data_file::ReadFault;
use super::split_fault::SplitFault;
use crate::formats::DType;

/// The reason why a weight file could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightError {
    /// The operating system failed to open the file.
    #[error("cannot open {}: {source}; check the path", path.display())]
    Open {
        /// File.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A part of a split model cannot be opened.
    #[error(
        "part {part} of {parts} of the model is missing: cannot open {}: {source}; put all parts into one folder",
        path.display()
    )]
    MissingPart {
        /// File of the part.
        path: PathBuf,
        /// Number of the part, from 1.
        part: u32,
        /// Number of parts.
        parts: u32,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The contents of the named file are invalid.
    #[error("{}: {source}", path.display())]
    InFile {
        /// File.
        path: PathBuf,
        /// The error.
        source: Box<WeightError>,
    },
    /// The file was opened, but its header cannot be read.
    #[error("cannot read the header: {fault}")]
    Read {
        /// What is wrong.
        fault: ReadFault,
    },
    /// The file does not begin with the magic bytes GGUF.
    #[error("not a GGUF file: magic at byte 0 is {found}, not 'GGUF'; give a .gguf file")]
    NotGguf {
        /// First bytes of the file, and the format that they indicate, if known.
        found: String,
    },
    /// Unsupported GGUF version.
    #[error(
        "version at byte 4: GGUF version {found} is not supported, only 2 and 3 are; {}",
        if *found == 1 { "convert the model again with a current converter" } else { "a newer release may read it" }
    )]
    Version {
        /// Version in the file.
        found: u32,
    },
    /// The file is big-endian.
    #[error(
        "version at byte 4: the file is big-endian (version {version}), but only little-endian GGUF is supported; use the little-endian file of the model"
    )]
    BigEndian {
        /// Version in the file.
        version: u32,
    },
    /// Unsupported weight format of a tensor.
    #[error(
        "tensor {index} '{tensor}': type at byte {offset}: {} is not supported; supported are {}",
        type_name(*id),
        supported_types()
    )]
    UnsupportedType {
        /// Tensor name.
        tensor: String,
        /// Index of the tensor in the file.
        index: u64,
        /// Byte offset of the type field.
        offset: u64,
        /// Format number (`ggml_type`).
        id: u32,
    },
    /// A field has an invalid value.
    #[error(
        "{field} at byte {offset}: {fault}; the file is truncated or corrupt, download it again"
    )]
    Field {
        /// The field, described in words.
        field: String,
        /// Byte offset of the field.
        offset: u64,
        /// What is wrong with the field.
        fault: Fault,
    },
    /// The parts of a split model do not belong together.
    #[error("split model: {0}")]
    Split(#[from] SplitFault),
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It extends past the end of the file.
    #[error("{what} does not fit in the {left} bytes left")]
    PastEnd {
        /// Content of the field, described in words.
        what: String,
        /// Bytes from the start of the content to the end of the file.
        left: u64,
    },
    /// A count or a length is above a limit.
    #[error("{found} is above the limit of {limit}")]
    AboveLimit {
        /// Value in the file.
        found: u64,
        /// Largest accepted value.
        limit: u64,
    },
    /// A number that must not be zero.
    #[error("it is zero")]
    Zero,
    /// An empty name.
    #[error("it is empty")]
    Empty,
    /// A size that overflows.
    #[error("{0} overflows")]
    Overflow(&'static str),
    /// Bytes that are not UTF-8.
    #[error("it is not valid UTF-8")]
    NotUtf8,
    /// A number without a meaning here.
    #[error("{found} is not {expected}")]
    Unknown {
        /// Value in the file.
        found: u64,
        /// Description of the accepted values.
        expected: &'static str,
    },
    /// Arrays that are nested too deep.
    #[error("arrays are nested more than {limit} deep")]
    TooDeep {
        /// Deepest accepted nesting.
        limit: usize,
    },
    /// A repeated name.
    #[error("it is a duplicate of number {first}")]
    Duplicate {
        /// Index of the first.
        first: u64,
    },
    /// A metadata value with a type other than the format prescribes.
    #[error("it has type {found}, but must be {expected}")]
    WrongType {
        /// Type in the file.
        found: String,
        /// Prescribed type.
        expected: &'static str,
    },
    /// A row that is not a whole number of blocks.
    #[error("{cols} columns are not a multiple of {dtype}'s block of {}", dtype.block_len())]
    PartialBlock {
        /// Columns.
        cols: u64,
        /// Format.
        dtype: DType,
    },
    /// A misaligned offset.
    #[error("{found} is not a multiple of the alignment {alignment}")]
    Misaligned {
        /// Offset in the file.
        found: u64,
        /// Alignment of the file.
        alignment: u64,
    },
    /// Data shared with another tensor.
    #[error("its data overlaps that of tensor '{other}'")]
    Overlap {
        /// The other tensor.
        other: String,
    },
}

impl WeightError {
    /// Adds the path of the file to the error.
    pub(super) fn in_file(self, path: &std::path::Path) -> WeightError {
        WeightError::InFile { path: path.to_owned(), source: Box::new(self) }
    }
}

fn supported_types() -> String {
    DType::ALL.map(|d| d.to_string()).join(", ")
}

/// Number and name of a `ggml_type`. Source: ggml's public header `ggml.h`.
fn type_name(id: u32) -> String {
    let name = match id {
        4 => "Q4_2, removed from GGUF",
        5 => "Q4_3, removed from GGUF",
        9 => "Q8_1",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        31 => "Q4_0_4_4, removed from GGUF",
        32 => "Q4_0_4_8, removed from GGUF",
        33 => "Q4_0_8_8, removed from GGUF",
        34 => "TQ1_0",
        35 => "TQ2_0",
        36 => "IQ4_NL_4_4, removed from GGUF",
        37 => "IQ4_NL_4_8, removed from GGUF",
        38 => "IQ4_NL_8_8, removed from GGUF",
        39 => "MXFP4",
        41 => "Q1_0",
        42 => "Q2_0",
        _ => return format!("unknown ggml_type {id}"),
    };
    format!("ggml_type {id} ({name})")
}
