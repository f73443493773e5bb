//! Why packing failed.

use super::cache::error::MustMap;
use crate::packed::beyond::BeyondMemory;
use crate::packed::memory::MemoryError;
use lapwing_model::requant::Requant;
use lapwing_model::weights::TensorReadError;
use thiserror::Error;

/// Why a matrix could not be packed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PackError {
    /// The system refused to map memory.
    #[error(
        "no {bytes} bytes for the packed weights: {source}; free memory, or use a smaller model \
         or format"
    )]
    Memory {
        /// Bytes requested.
        bytes: usize,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The packed weights do not fit into the memory that is free, and they cannot be used from the disk.
    #[error(
        "{beyond}, so that they can only be used from a file that is mapped, and {why}; or free memory, or use a smaller model or format"
    )]
    Beyond {
        /// Both sizes.
        beyond: BeyondMemory,
        /// Why there is no such file.
        why: MustMap,
    },
    /// The stored rows cannot be read.
    #[error(transparent)]
    Read(TensorReadError),
    /// A value cannot be represented in the format that a matrix is requantised to.
    #[error(
        "row {row} of matrix {matrix} has a value that is infinite, NaN, or too large for \
         the binary16 scale of {format}; leave the matrix as stored"
    )]
    NotFinite {
        /// Index in the list of matrices to pack.
        matrix: usize,
        /// First such row.
        row: usize,
        /// Requested format.
        format: Requant,
    },
}

impl From<MemoryError> for PackError {
    fn from(MemoryError { bytes, source }: MemoryError) -> PackError {
        PackError::Memory { bytes, source }
    }
}
