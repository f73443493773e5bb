//! Everything on the GPU.

use std::sync::Arc;

use super::options::OrderSwap;
use super::roles::Needs;
use super::stages::Stages;
use super::{ChunkShape, PlanInput, Strategy};
use crate::{PlanError, Route};

/// Everything on the GPU, in one stage: T = T_gpu^all, a term of the solver's objective (S2-38).
#[derive(Clone, Copy, Debug, Default)]
pub struct GpuOnly;

impl Strategy for GpuOnly {
    fn name(&self) -> &str {
        "gpu-only"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let gpu = Needs { strategy: self.name(), devices: input.devices }.gpu()?;
        let mut stages = Stages::new(input, shape, OrderSwap::Off);
        stages.on(gpu, stages.nodes());
        stages.finish("the GPU is the only device of this strategy".to_owned())
    }
}
