//! The chunks of a prompt, each with its route.

use std::collections::HashSet;
use std::sync::Arc;

use lapwing_kernels::device::GraphKey;

use crate::chunk::{ChunkShape, PromptRows};
use crate::device::DeviceId;
use crate::error::PlanError;
use crate::phase::Phase;
use crate::route::Route;
use crate::strategy::interface::{PlanInput, Strategy};

/// A prompt, and the limits under which the engine runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Rows of the prompt.
    pub prompt: usize,
    /// Rows before the prompt in the KV cache.
    pub context: usize,
    /// Maximum chunks in flight.
    pub in_flight: usize,
}

/// A chunk with its route.
#[derive(Clone, Debug)]
pub struct PlannedChunk {
    /// Its shape.
    pub shape: ChunkShape,
    /// Its route.
    pub route: Arc<Route>,
}

/// Cuts a prompt as an engine does in which some graphs are not ready: other devices compute the chunks whose graphs are
/// missing.
pub struct ChunksWithGraphs<'a> {
    /// The graphs that are ready.
    pub ready: &'a HashSet<(DeviceId, GraphKey)>,
    /// Cuts and places the chunks whose graphs are missing.
    pub meanwhile: &'a dyn Strategy,
}

impl ChunksWithGraphs<'_> {
    /// The chunks of a prompt of that many rows.
    ///
    /// # Errors
    /// [`PlanError`] if a strategy has no route.
    pub fn chunks(
        &self,
        strategy: &dyn Strategy,
        input: &PlanInput<'_>,
        prompt: usize,
    ) -> Result<Vec<PlannedChunk>, PlanError> {
        let (mut chunks, mut remaining) = (Vec::new(), prompt);
        while remaining > 0 {
            let at = PromptRows { all: prompt, remaining };
            let mut chunk = next(strategy, input, at)?;
            if !chunk.route.graphs.iter().all(|graph| self.ready.contains(graph)) {
                chunk = next(self.meanwhile, input, at)?;
            }
            remaining -= chunk.shape.rows;
            chunks.push(chunk);
        }
        Ok(chunks)
    }
}

/// The next chunk of a prompt.
fn next(
    strategy: &dyn Strategy,
    input: &PlanInput<'_>,
    at: PromptRows,
) -> Result<PlannedChunk, PlanError> {
    let PromptRows { all, remaining } = at;
    let most = remaining.min(input.chunk_rows);
    let rows = strategy.chunk_rows(input, at).clamp(most.min(1), most.max(1));
    let (phase, selected, context) =
        (Phase::Prefill, usize::from(rows == remaining), all - remaining);
    let shape = ChunkShape { phase, rows, selected, context, prompt: all };
    Ok(PlannedChunk { shape, route: strategy.route(input, &shape.rounded())? })
}
