//! A strategy whose panics become errors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use super::interface::{PlanInput, Strategy};
use crate::chunk::{ChunkShape, PromptRows};
use crate::error::PlanError;
use crate::route::Route;

/// A strategy of the caller, whose panics become [`PlanError::Panicked`].
pub struct Guarded {
    inner: Arc<dyn Strategy>,
    /// Text of the first panic in [`Strategy::chunk_rows`], which cannot return an error: the next
    /// route does.
    panicked: OnceLock<String>,
}

impl Guarded {
    /// Guards `inner`.
    pub fn new(inner: Arc<dyn Strategy>) -> Guarded {
        Guarded { inner, panicked: OnceLock::new() }
    }

    fn error(&self, reason: String) -> PlanError {
        PlanError::Panicked { strategy: self.inner.name().to_owned(), reason }
    }
}

impl Strategy for Guarded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        // A strategy is a pure function; if it is not, only its own state can be half changed.
        let rows = catch_unwind(AssertUnwindSafe(|| self.inner.chunk_rows(input, prompt)));
        rows.unwrap_or_else(|panic| {
            let _ = self.panicked.set(text(&*panic));
            prompt.remaining.min(input.chunk_rows)
        })
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        if let Some(reason) = self.panicked.get() {
            return Err(self.error(reason.clone()));
        }
        let route = catch_unwind(AssertUnwindSafe(|| self.inner.route(input, shape)));
        route.unwrap_or_else(|panic| Err(self.error(text(&*panic))))
    }
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it panicked without a message".to_owned())
}
