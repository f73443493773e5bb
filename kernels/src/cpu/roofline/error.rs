//! Why nothing was measured.

use thiserror::Error;

/// Why nothing was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RooflineError {
    /// The buffer to read does not fit.
    #[error("no {bytes} bytes of memory to measure reading with; end other programs")]
    Memory {
        /// Bytes that were asked for.
        bytes: usize,
    },
}
