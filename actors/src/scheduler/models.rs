//! The models of an engine. Each has its own planner, KV cache and limits.

use lapwing_plan::planner::Planner;
use lapwing_plan::strategy::{ChunkShape, PromptRows};
use lapwing_plan::{Phase, PlanError};

use super::parts::KvPages;

/// A model that an engine runs.
pub struct SchedulerModel {
    /// Chooses routes and chunk sizes.
    pub planner: Planner,
    /// Pages of the KV cache.
    pub kv: KvPages,
    /// Maximum tokens of a sequence, prompt included.
    pub context: usize,
    /// Vocabulary size; ids from here on are refused.
    pub vocab: usize,
}

/// A model, and its decode chunk.
pub(super) struct Model {
    pub(super) planner: Planner,
    pub(super) kv: KvPages,
    pub(super) context: usize,
    pub(super) vocab: usize,
    /// The chunk in flight that holds decode rows. There is at most one per model, so that all
    /// sequences that decode stay in one batch.
    pub(super) decoding: Option<u64>,
}

impl Model {
    /// A model, if its strategy has a route for a whole chunk and for a decode step.
    pub(super) fn new(model: SchedulerModel) -> Result<Model, PlanError> {
        let SchedulerModel { mut planner, kv, context, vocab } = model;
        let rows = planner.chunk_rows(PromptRows::new(context));
        let (phase, prompt) = (Phase::Prefill, context);
        let chunk = ChunkShape { phase, rows, selected: 1, context: 0, prompt };
        planner.route(chunk)?;
        let step = ChunkShape { phase: Phase::Decode, rows: 1, context: rows, prompt: 0, ..chunk };
        planner.route(step)?;
        Ok(Model { planner, kv, context, vocab, decoding: None })
    }
}
