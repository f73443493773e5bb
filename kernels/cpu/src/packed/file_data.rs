//! Packed weights in a file: where they are, and how they are read and checked.

use super::beyond::BeyondMemory;
use super::memory::MemoryError;
use lapwing_model::weights::{DataFile, ReadFault};
use std::io;
use std::ops::Range;

/// Bytes per checksum.
pub(crate) const CHUNK: usize = 1 << 20;

/// Where a file has packed weights, and their checksums.
#[derive(Debug)]
pub(crate) struct FileData {
    /// Their bytes in the file.
    pub(crate) range: Range<usize>,
    /// CRC-32 of each [`CHUNK`] of them, little-endian.
    pub(crate) checksums: Vec<[u8; 4]>,
}

/// Why packed weights cannot be read from their file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackedFault {
    /// Bytes cannot be read.
    #[error(transparent)]
    Read(#[from] ReadFault),
    /// Bytes differ from their checksum.
    #[error("another program has changed its values; start again")]
    Damaged,
    /// There is no memory for them.
    #[error("no {bytes} bytes of memory for it: {source}; free memory, then start again")]
    Memory {
        /// Bytes requested.
        bytes: usize,
        /// Error of the system.
        source: io::Error,
    },
    /// They are larger than memory, so that there can be no copy.
    #[error(
        "another program was about to change it, and {0}, so that they were not copied; start again"
    )]
    Beyond(BeyondMemory),
    /// They were locked in memory, and their copy cannot be.
    #[error("its copy cannot be locked in memory: {0}; free memory, then start again")]
    Lock(#[source] io::Error),
}

impl From<MemoryError> for PackedFault {
    fn from(MemoryError { bytes, source }: MemoryError) -> PackedFault {
        PackedFault::Memory { bytes, source }
    }
}

impl FileData {
    /// Number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.checksums.len()
    }

    /// Bytes of a chunk.
    pub(crate) fn chunk_len(&self, index: usize) -> usize {
        self.range.len().saturating_sub(index * CHUNK).min(CHUNK)
    }

    /// Fills `to`, as long as chunk `index`, with its bytes, and checks them.
    pub(crate) fn read(
        &self,
        file: &DataFile,
        index: usize,
        to: &mut [u8],
    ) -> Result<(), PackedFault> {
        file.read((self.range.start + index * CHUNK) as u64, to)?;
        match crc32fast::hash(to).to_le_bytes() == self.checksums[index] {
            true => Ok(()),
            false => Err(PackedFault::Damaged),
        }
    }
}
