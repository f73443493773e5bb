//! Predicted time of a whole prompt: its chunks are simulated on the devices by the rules of the
//! runtime, so the overlap of chunks counts.

pub(crate) mod chunks;
mod cut;
pub(crate) mod prediction;
mod simulation;
mod times;

pub use chunks::{ChunksWithGraphs, PlannedChunk, Workload};
pub use cut::plan;
pub use prediction::Prediction;
pub use times::{alone, predict, predict_cold, predict_warm};
