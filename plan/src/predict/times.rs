//! Predicted times of chunks.

use std::collections::HashSet;
use std::sync::Arc;

use lapwing_kernels::device::GraphKey;

use super::chunks::PlannedChunk;
use super::prediction::Prediction;
use super::simulation::{Graphs, simulate};
use crate::chunk::ChunkShape;
use crate::device::DeviceId;
use crate::route::Route;
use crate::strategy::interface::PlanInput;

/// Predicts chunks on the devices.
///
/// A device runs one part at a time, in the order of arrival. The stages of a chunk run one after
/// another. The next chunk enters when one of `in_flight` permits is free. A part whose inputs come
/// from another device arrives T_sync later. The device that finishes the last part of a divided
/// stage merges the parts.
///
/// Graphs that are prepared ahead exist at the start (unlike in [`predict_cold`]). Graphs that are
/// prepared on demand do not, as for a prompt of a new length (unlike in [`predict_warm`]).
pub fn predict(input: &PlanInput<'_>, chunks: &[PlannedChunk], in_flight: usize) -> Prediction {
    simulate(input, chunks, in_flight, Graphs::Ahead)
}

/// As [`predict`], for a prompt length that the engine has run before: all graphs exist.
pub fn predict_warm(
    input: &PlanInput<'_>,
    chunks: &[PlannedChunk],
    in_flight: usize,
) -> Prediction {
    simulate(input, chunks, in_flight, Graphs::All)
}

/// As [`predict`], but only the graphs of `ready` exist at the start. A chunk enters when the graphs of its route are
/// prepared. Their preparation starts when the chunk is the next to enter and has a permit; each
/// device prepares its missing graphs one after another, while it runs earlier chunks.
pub fn predict_cold(
    input: &PlanInput<'_>,
    ready: &HashSet<(DeviceId, GraphKey)>,
    chunks: &[PlannedChunk],
    in_flight: usize,
) -> Prediction {
    simulate(input, chunks, in_flight, Graphs::Only(ready))
}

/// Predicted time of one chunk alone.
pub fn alone(input: &PlanInput<'_>, shape: &ChunkShape, route: &Arc<Route>) -> Prediction {
    let chunk = PlannedChunk { shape: *shape, route: Arc::clone(route) };
    predict(input, &[chunk], 1)
}
