//! The use of a model.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{ModelSpec, Models, Slot};
use lapwing_engine::Engine;

/// The use of a model. It stays loaded until this is dropped.
#[derive(Debug)]
pub(crate) struct ModelLease {
    pub(super) models: Arc<Models>,
    pub(super) index: usize,
    /// Its engine.
    pub(crate) engine: Engine,
    /// Time that this request has waited until it was loaded; `None` if it was.
    pub(crate) load_time: Option<Duration>,
    pub(super) keep_alive: Option<Duration>,
}

impl ModelLease {
    /// Name of the model.
    pub(crate) fn name(&self) -> &str {
        &self.models.specs[self.index].name
    }

    /// The model.
    pub(crate) fn spec(&self) -> &ModelSpec {
        &self.models.specs[self.index]
    }
}

impl Drop for ModelLease {
    fn drop(&mut self) {
        let mut slots = self.models.lock();
        if let Slot::Loaded(loaded) = &mut slots[self.index] {
            loaded.users -= 1;
            loaded.last_used = Instant::now();
            loaded.expires = self.keep_alive.and_then(|time| loaded.last_used.checked_add(time));
        }
        drop(slots);
        self.models.changed.notify_waiters();
    }
}
