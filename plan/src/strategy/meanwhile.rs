//! Serves chunks while the graphs of another strategy are being prepared.

use std::sync::Arc;

use super::auto::Auto;
use super::cpu_only::CpuOnly;
use super::gpu_only::GpuOnly;
use super::interface::{PlanInput, Strategy};
use crate::chunk::{ChunkShape, PromptRows};
use crate::error::PlanError;
use crate::route::Route;

/// All ops on one device that needs no prepared graphs: the CPU or the GPU, whichever is predicted to be faster.
/// It takes the place of a strategy for chunks whose graphs are not ready.
pub struct Meanwhile {
    inner: Auto,
    instead_of: String,
}

impl Meanwhile {
    /// Serves chunks in place of the strategy with this name. `with_gpu`: whether the GPU may run a whole model, because
    /// its memory is large enough. `in_flight`: chunks that the engine admits at the same time.
    pub fn new(instead_of: &str, with_gpu: bool, in_flight: usize) -> Meanwhile {
        let cpu: Arc<dyn Strategy> = Arc::new(CpuOnly);
        let gpu: Option<Arc<dyn Strategy>> = with_gpu.then_some(Arc::new(GpuOnly));
        let candidates = [cpu].into_iter().chain(gpu).collect();
        Meanwhile { inner: Auto::new(candidates, in_flight), instead_of: instead_of.to_owned() }
    }
}

impl Strategy for Meanwhile {
    fn name(&self) -> &str {
        "meanwhile"
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        self.inner.chunk_rows(input, prompt)
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let route = self.inner.route(input, shape)?;
        let reason =
            format!("graphs of '{}' are not ready; meanwhile {}", self.instead_of, route.reason);
        Ok(Arc::new(Route { reason, is_meanwhile: true, ..Route::clone(&route) }))
    }
}
