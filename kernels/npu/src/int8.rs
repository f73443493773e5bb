//! Int8 activations with one fixed scale for each product, and outlier channels computed beside the array
//! (llm.npu, Xu et al., ASPLOS 2025, section 3.3, "shadow outlier execution").
//!
//! [`ActivationRanges`] are measured once for a model, on a text. From them and [`StaticInt8`] follow the
//! [`Scales`]. A product's input is rounded to integers within ±127 times its scale, on which the array
//! computes; what a value exceeds that by is the outlier's excess, which the CPU multiplies with the weights of
//! that channel in f32 meanwhile. The sum of both is the output.

mod columns;
mod counts;
mod excess;
mod graph;
mod measure;
mod parts;
mod product;
mod ranges;
mod ranges_file;
mod scales;

pub use counts::{OutlierCounter, OutlierCounts};
pub use excess::NotFinite;
pub(super) use graph::Int8Graph;
pub use measure::{MeasureRangesError, RangeRecorder};
pub(super) use parts::Int8Parts;
pub use ranges::{ActivationRange, ActivationRanges};
pub use ranges_file::RangesFileError;
pub use scales::{ProductScale, Scales, ScalesError, StaticInt8};

/// The largest integer of an activation.
pub(super) const LARGEST: f32 = 127.0;
