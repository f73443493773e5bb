//! Why a weight file could not be opened.

use std::io;
use std::path::PathBuf;

use crate::quant::DType;

/// Why a weight file could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightError {
    /// The operating system would not open or map the file.
    #[error("cannot open {}: {source}; check the path", path.display())]
    Open {
        /// File.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A part of a split model would not open.
    #[error(
        "part {part} of {parts} is missing: cannot open {}: {source}; put all parts into one folder",
        path.display()
    )]
    MissingPart {
        /// File of the part.
        path: PathBuf,
        /// Number of the part, from 1.
        part: u32,
        /// Number of parts.
        parts: u32,
        /// What the operating system said.
        source: io::Error,
    },
    /// Something is wrong inside the named file.
    #[error("{}: {source}", path.display())]
    InFile {
        /// File.
        path: PathBuf,
        /// What is wrong.
        source: Box<WeightError>,
    },
    /// The file does not begin with the letters GGUF.
    #[error("not a GGUF file: magic at byte 0 is {found}, not 'GGUF'; give a .gguf file")]
    NotGguf {
        /// First bytes, and the format that they belong to if it is known.
        found: String,
    },
    /// A version of GGUF that is not read.
    #[error(
        "version at byte 4: GGUF version {found} is not supported, only 2 and 3 are; {}",
        if *found == 1 { "convert the model again with a current converter" } else { "a newer release may read it" }
    )]
    Version {
        /// Version in the file.
        found: u32,
    },
    /// The numbers in the file are big-endian.
    #[error(
        "version at byte 4: the file is big-endian (version {version}), only little-endian GGUF is read; get the little-endian file"
    )]
    BigEndian {
        /// Version in the file.
        version: u32,
    },
    /// A tensor is stored in a format that is not supported.
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
        /// Where the type is stored.
        offset: u64,
        /// Number of the format (`ggml_type`).
        id: u32,
    },
    /// A field of the file makes no sense.
    #[error("{field} at byte {offset}: {fault}; the file is truncated or corrupt, fetch it again")]
    Field {
        /// Which field, in words.
        field: String,
        /// Where it is stored.
        offset: u64,
        /// What is wrong with it.
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
    /// It ends behind the end of the file.
    #[error("{what} does not fit in the {left} bytes left")]
    PastEnd {
        /// The field's content, in words.
        what: String,
        /// Bytes from the field's content to the end of the file.
        left: u64,
    },
    /// A count or a length is above a limit.
    #[error("{found} is above the limit of {limit}")]
    AboveLimit {
        /// Number in the file.
        found: u64,
        /// Largest number accepted.
        limit: u64,
    },
    /// A number that may not be zero.
    #[error("it is zero")]
    Zero,
    /// A name without letters.
    #[error("it is empty")]
    Empty,
    /// A size that no computer could hold.
    #[error("{0} overflows")]
    Overflow(&'static str),
    /// Bytes that are not UTF-8.
    #[error("it is not valid UTF-8")]
    NotUtf8,
    /// A number that stands for nothing.
    #[error("{found} is not {expected}")]
    Unknown {
        /// Number in the file.
        found: u64,
        /// What it should have been.
        expected: &'static str,
    },
    /// Arrays inside arrays, too deep.
    #[error("arrays are nested more than {limit} deep")]
    TooDeep {
        /// Deepest nesting accepted.
        limit: usize,
    },
    /// A name that was there before.
    #[error("it is there twice, first as number {first}")]
    Duplicate {
        /// Index of the first.
        first: u64,
    },
    /// A metadata value of another type than the format prescribes.
    #[error("it has type {found}, but must be {expected}")]
    WrongType {
        /// Type in the file.
        found: String,
        /// Type prescribed.
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
    /// An offset that is not aligned.
    #[error("{found} is not a multiple of the alignment {alignment}")]
    Misaligned {
        /// Offset in the file.
        found: u64,
        /// Alignment of the file.
        alignment: u64,
    },
    /// Data that belong to two tensors.
    #[error("its data overlap those of tensor '{other}'")]
    Overlap {
        /// The other tensor.
        other: String,
    },
}

/// Why the parts of a split model do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitFault {
    /// The parts' names cannot be told from the name of this one.
    #[error(
        "split.count is {parts}, but {} is not named …-{:05}-of-{parts:05}.gguf; give it the name that it had",
        path.display(), no + 1
    )]
    Name {
        /// File.
        path: PathBuf,
        /// `split.no`.
        no: u32,
        /// `split.count`.
        parts: u32,
    },
    /// A key has a value that no part of a split model has.
    #[error("{key} of {} is {found}, but must be {expected}; the parts are not of one model", path.display())]
    Key {
        /// Metadata key.
        key: &'static str,
        /// File.
        path: PathBuf,
        /// Value in the file, in words.
        found: String,
        /// Value that fits.
        expected: String,
    },
    /// Two parts hold a tensor of the same name.
    #[error("tensor '{tensor}' is in {} and in {}; the parts are not of one model", first.display(), second.display())]
    DuplicateTensor {
        /// Tensor name.
        tensor: String,
        /// File of the first.
        first: PathBuf,
        /// File of the second.
        second: PathBuf,
    },
}

impl WeightError {
    /// The same error, with the name of the file.
    pub(super) fn in_file(self, path: &std::path::Path) -> WeightError {
        WeightError::InFile { path: path.to_owned(), source: Box::new(self) }
    }
}

fn supported_types() -> String {
    DType::ALL.map(|d| d.to_string()).join(", ")
}

/// Number and name of a `ggml_type`, by ggml's public header.
fn type_name(id: u32) -> String {
    let name = match id {
        4 => "Q4_2, removed from GGUF",
        5 => "Q4_3, removed from GGUF",
        9 => "Q8_1",
        10 => "Q2_K",
        11 => "Q3_K",
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
        40 => "NVFP4",
        41 => "Q1_0",
        42 => "Q2_0",
        _ => return format!("unknown ggml_type {id}"),
    };
    format!("ggml_type {id} ({name})")
}
