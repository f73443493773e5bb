//! What a scheduler is made of.

use lapwing_kernels::kv::{KvLayout, KvPool};
use lapwing_plan::planner::Planner;

use crate::error::RunError;
use crate::policy::QueuePolicy;

/// Limits of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// Most tokens of a sequence of the first model, prompt included.
    pub context: usize,
    /// Most sequences computed at the same time.
    pub sequences_max: usize,
    /// Most chunks in flight.
    pub permits: usize,
    /// Vocabulary size of the first model; ids from here on are refused.
    pub vocab: usize,
}

/// What the scheduler is made of.
pub struct SchedulerParts {
    /// Limits.
    pub config: SchedulerConfig,
    /// Chooses routes of the first model, and how prompts are cut into chunks.
    pub planner: Planner,
    /// Pages of the first model's KV cache.
    pub kv: KvPages,
    /// Orders requests.
    pub policy: Box<dyn QueuePolicy>,
}

/// The allocator of a KV cache's pages, and their shape.
#[derive(Clone, Debug)]
pub struct KvPages {
    /// Free pages.
    pub pool: KvPool,
    /// Shape of a page.
    pub layout: KvLayout,
}

impl KvPages {
    /// Why `rows` rows can never be held, if they cannot.
    pub(super) fn too_small_for(&self, rows: usize) -> Option<RunError> {
        let (wanted, capacity) = (self.layout.pages_for(rows), self.pool.capacity());
        (wanted > capacity).then_some(RunError::OutOfKvPages { wanted, capacity })
    }
}
