//! Errors of QNN.

use std::path::PathBuf;

use super::library::{MAJOR, VARIABLE};
use lapwing_npu::ScalesError;

/// Why QNN cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QnnError {
    /// No library was found.
    #[error(
        "no QNN library was found in {searched}; install it (as a Python package: pip install onnxruntime-qnn; \
         Qualcomm's terms apply), or set {VARIABLE} to libQnnHtp or its folder"
    )]
    NoLibrary {
        /// The places.
        searched: String,
    },
    /// The system cannot load the library.
    #[error("the QNN library {path} cannot be loaded: {reason}")]
    Load {
        /// Its path.
        path: PathBuf,
        /// The system's message.
        reason: String,
    },
    /// The library is another one, or lacks a function.
    #[error(
        "the QNN library {path} has no function {function}; set {VARIABLE} to the libQnnHtp of QNN 2 (QAIRT 2)"
    )]
    NoFunction {
        /// Its path.
        path: PathBuf,
        /// The function.
        function: &'static str,
    },
    /// The library has another interface.
    #[error(
        "the QNN library {path} has the interface {found}, but version {MAJOR} is needed; install QNN 2 (QAIRT 2)"
    )]
    Version {
        /// Its path.
        path: PathBuf,
        /// Versions of its interfaces.
        found: String,
    },
    /// The library has no such processor, or does not reach it.
    #[error(
        "QNN refused the processor soc={soc}, arch={arch} with code {code}: {reason}; state those of your system \
         as in npu=qnn:soc=57,arch=75, and see that it has Qualcomm's driver"
    )]
    Refused {
        /// Number of the system on chip.
        soc: u32,
        /// Version of the processor's architecture.
        arch: u32,
        /// QNN's code.
        code: u64,
        /// The library's message.
        reason: String,
    },
    /// A call of the library failed.
    #[error("QNN: {call} failed with code {code}: {reason}")]
    Call {
        /// What was to be done.
        call: &'static str,
        /// QNN's code.
        code: u64,
        /// The library's message.
        reason: String,
    },
    /// Activations and weights do not fit each other.
    #[error("{reason}")]
    Settings {
        /// What has to be different.
        reason: &'static str,
    },
    /// Activations in integers have no ranges.
    #[error(transparent)]
    Ranges(#[from] ScalesError),
    /// Blocks do not divide a matrix.
    #[error(
        "the matrix '{matrix}' has {columns} columns, which blocks of {block} weights do not divide; give smaller \
         blocks, as in weights=int4:16, or weights=int8"
    )]
    Blocks {
        /// Name of the matrix.
        matrix: String,
        /// Its columns.
        columns: usize,
        /// Weights of a block.
        block: usize,
    },
    /// A tensor is longer than the library can be told.
    #[error("QNN takes no tensor of {dims:?}; run this part on another device")]
    TooLarge {
        /// Its dimensions.
        dims: Vec<usize>,
    },
    /// A constant has more or fewer values than its dimensions say.
    #[error("a constant of {wanted} bytes for QNN has {found}")]
    Length {
        /// Bytes by its dimensions.
        wanted: usize,
        /// Bytes that there are.
        found: usize,
    },
}
