//! The shape of a chunk, and the progress of the prompt that it is cut from.

use lapwing_kernels::device::Batch;

use crate::phase::Phase;

/// The shape of a chunk. Chunks of the same shape take the same route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChunkShape {
    /// Whether its rows belong to prompts, to decode steps, or to both.
    pub phase: Phase,
    /// Number of rows.
    pub rows: usize,
    /// Rows whose logits are computed.
    pub selected: usize,
    /// Rows before the chunk in the KV cache; the maximum over its sequences.
    pub context: usize,
    /// Rows of the whole prompt, summed over all prompts in the chunk; 0 in a decode step.
    pub prompt: usize,
}

/// Progress of a prompt, or of several that are cut together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PromptRows {
    /// Rows of the whole prompt.
    pub all: usize,
    /// Rows that no chunk holds yet.
    pub remaining: usize,
}

impl PromptRows {
    /// A prompt of which no chunk has been cut.
    pub fn new(rows: usize) -> PromptRows {
        PromptRows { all: rows, remaining: rows }
    }
}

impl ChunkShape {
    /// The shape that a route is planned for: the context is rounded up to a power of two, so that
    /// one route serves many contexts.
    pub fn rounded(&self) -> ChunkShape {
        let context = if self.context == 0 { 0 } else { self.context.next_power_of_two() };
        ChunkShape { context, ..*self }
    }

    /// The shape that times are predicted for: of prompt rows the context is rounded up only to an eighth of a power of two, because
    /// attention takes time in proportion to it, and routes are chosen by the difference.
    pub fn timed(&self) -> ChunkShape {
        let step = (self.context.next_power_of_two() / 8).max(1);
        match self.phase {
            Phase::Prefill => ChunkShape { context: self.context.next_multiple_of(step), ..*self },
            Phase::Decode | Phase::Mixed => self.rounded(),
        }
    }

    /// A batch of this shape, as the input of a cost model: one sequence, whose last rows are
    /// selected. Rows that may be passed on count as if they were.
    pub fn batch(&self) -> Batch {
        let mut batch = Batch { passes_on: true, ..Batch::default() };
        let selected = self.rows - self.selected.min(self.rows)..self.rows;
        batch.push(&vec![0; self.rows], self.context, Vec::new(), selected);
        batch
    }
}
