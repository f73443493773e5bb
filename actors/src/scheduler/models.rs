//! The models of an engine. Each has its own planner, KV cache and limits.

use lapwing_kernels::device::ModelId;
use lapwing_plan::planner::Planner;
use lapwing_plan::strategy::{ChunkShape, PromptRows};
use lapwing_plan::{Phase, PlanError};

use super::{KvPages, Scheduler};

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

impl Scheduler {
    /// Adds a model; its number is the number of models before it. The planner must be made for that
    /// number, and every device must hold the model's weights.
    ///
    /// # Errors
    /// [`PlanError`] when the strategy finds no route for a whole chunk or a decode step, or makes
    /// routes for another model.
    pub fn add_model(&mut self, model: SchedulerModel) -> Result<ModelId, PlanError> {
        let (id, found) = (ModelId(self.models.len()), model.planner.model());
        if found != id {
            return Err(PlanError::OtherModel { found: found.0, expected: id.0 });
        }
        self.models.push(Model::new(model)?);
        Ok(id)
    }

    /// Models with running sequences, in the order of their best-ranked one.
    pub(super) fn models_in_order(&self) -> Vec<ModelId> {
        let mut order: Vec<ModelId> = Vec::new();
        for sequence in &self.running {
            if !order.contains(&sequence.model) {
                order.push(sequence.model);
            }
        }
        order
    }
}
