//! Why weights are not packed.

use crate::cpu::packed::memory::MemoryError;
use crate::requant::Requant;
use thiserror::Error;

/// Why a matrix could not be packed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PackError {
    /// The system gives no memory.
    #[error(
        "no {bytes} bytes for the packed weights: {source}; free memory, or use a smaller model \
         or format"
    )]
    Memory {
        /// Bytes that were asked for.
        bytes: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// A value has no place in the format to which a matrix is requantised.
    #[error(
        "row {row} of matrix {matrix} has a value that is infinite, no number, or too large for \
         the binary16 scale of {format}; leave the matrix as stored"
    )]
    NotFinite {
        /// Index among those that were to be packed.
        matrix: usize,
        /// First such row.
        row: usize,
        /// Format.
        format: Requant,
    },
}

impl From<MemoryError> for PackError {
    fn from(MemoryError { bytes, source }: MemoryError) -> PackError {
        PackError::Memory { bytes, source }
    }
}
