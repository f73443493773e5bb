//! Turns panics of a strategy into errors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use super::interface::{PlanInput, Strategy};
use crate::chunk::{ChunkShape, PromptRows};
use crate::error::PlanError;
use crate::route::Route;

/// A strategy whose panics are [`PlanError::Panicked`], with the text of the panic.
///
/// A panic while it cuts a prompt is the error of the next route.
pub struct Guarded {
    inner: Arc<dyn Strategy>,
    name: String,
    /// Text of a panic in [`Strategy::chunk_rows`] that no route has reported.
    pending: Mutex<Option<String>>,
}

impl Guarded {
    /// Guards a strategy.
    pub fn new(inner: Arc<dyn Strategy>) -> Guarded {
        let name = catch_unwind(AssertUnwindSafe(|| inner.name().to_owned()));
        Guarded::named(&name.unwrap_or_else(|_| "unnamed".to_owned()), inner)
    }

    /// Guards a strategy, and calls it by another name.
    pub fn named(name: &str, inner: Arc<dyn Strategy>) -> Guarded {
        Guarded { inner, name: name.to_owned(), pending: Mutex::default() }
    }

    fn pending(&self) -> Option<String> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What the strategy returns, or the error of its panic.
    fn guarded<T>(
        &self,
        call: impl FnOnce(&dyn Strategy) -> Result<T, PlanError>,
    ) -> Result<T, PlanError> {
        let panicked = |reason| PlanError::Panicked { strategy: self.name.clone(), reason };
        if let Some(reason) = self.pending() {
            return Err(panicked(reason));
        }
        catch_unwind(AssertUnwindSafe(|| call(&*self.inner)))
            .unwrap_or_else(|panic| Err(panicked(panic_text(&*panic))))
    }
}

impl Strategy for Guarded {
    fn name(&self) -> &str {
        &self.name
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        // Nothing here is used after a panic; the strategy's own state is its own affair.
        let rows = catch_unwind(AssertUnwindSafe(|| self.inner.chunk_rows(input, prompt)));
        rows.unwrap_or_else(|panic| {
            let text = panic_text(&*panic);
            *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
            prompt.remaining.min(input.chunk_rows)
        })
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        self.guarded(|inner| inner.route(input, shape))
    }

    fn routes(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Result<Vec<Arc<Route>>, PlanError> {
        self.guarded(|inner| inner.routes(input, shape))
    }
}

pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it panicked without a message".to_owned())
}
