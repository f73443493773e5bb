//! Why a measurement failed.

use thiserror::Error;

/// Why a measurement failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RooflineError {
    /// The buffer to read cannot be allocated.
    #[error("not enough memory to measure read bandwidth: {bytes} bytes; end other programs")]
    Memory {
        /// Bytes requested.
        bytes: usize,
    },
}
