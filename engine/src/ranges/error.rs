//! Errors of ranges.

use lapwing_kernels::npu::{MeasureRangesError, RangesFileError, ScalesError};

/// Why ranges cannot be measured, stored or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RangesError {
    /// The measurement fails.
    #[error(transparent)]
    Measure(#[from] MeasureRangesError),
    /// There is no file of ranges, or it cannot be used or written.
    #[error(transparent)]
    File(#[from] RangesFileError),
    /// The ranges do not fit the model.
    #[error(transparent)]
    Scales(#[from] ScalesError),
    /// The caller cancelled the measurement.
    #[error("the measurement was cancelled; no ranges were stored")]
    Cancelled,
}
