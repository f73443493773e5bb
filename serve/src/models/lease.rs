//! The use of a model.

use std::sync::Arc;
use std::time::Duration;

use super::slots::Slots;
use super::spec::{ModelSpec, Source};
use lapwing_engine::Engine;

/// The use of a model. It stays loaded until this is dropped.
#[derive(Debug)]
pub(crate) struct ModelLease {
    pub(super) specs: Arc<[ModelSpec]>,
    pub(super) slots: Arc<Slots>,
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
        &self.spec().name
    }

    /// Takes how long a request wants the model to stay loaded, and says whether that has no effect: the program
    /// decides for how long an engine of its own runs.
    pub(crate) fn overrules(&self, keep_alive: &mut Option<Option<Duration>>) -> bool {
        matches!(self.spec().source, Source::Running(_)) && keep_alive.take().is_some()
    }

    /// The model.
    pub(crate) fn spec(&self) -> &ModelSpec {
        &self.specs[self.index]
    }
}

impl Drop for ModelLease {
    fn drop(&mut self) {
        self.slots.release(self.index, self.keep_alive);
    }
}
