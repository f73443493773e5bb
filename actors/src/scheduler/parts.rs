//! What a scheduler is made of.

use lapwing_kernels::kv::{KvLayout, KvPool, KvStore};
use lapwing_plan::planner::Planner;

use crate::error::RunError;
use crate::policy::QueuePolicy;

/// Limits of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// Maximum tokens of a sequence of the first model, prompt included.
    pub context: usize,
    /// Maximum number of sequences that run at the same time.
    pub sequences_max: usize,
    /// Maximum number of chunks in flight.
    pub permits: usize,
    /// Vocabulary size of the first model; ids from here on are refused.
    pub vocab: usize,
}

/// The components of a scheduler.
pub struct SchedulerParts {
    /// Limits.
    pub config: SchedulerConfig,
    /// Chooses the routes of the first model and the sizes of its chunks.
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
    /// Free places of states.
    pub states: KvPool,
    /// Shape of a page.
    pub layout: KvLayout,
}

impl KvPages {
    /// Those of a store.
    pub fn of(store: &KvStore) -> KvPages {
        let (pool, states) = (store.pool().clone(), store.state_pool().clone());
        KvPages { pool, states, layout: store.layout().clone() }
    }

    /// The error if the whole cache, without pages that a lost device may write, cannot hold `rows` rows.
    pub(super) fn too_small_for(&self, rows: usize) -> Option<RunError> {
        let (wanted, capacity) = (self.layout.pages_for(rows), self.pool.usable());
        (wanted > capacity).then_some(RunError::OutOfKvPages { wanted, capacity })
    }
}
