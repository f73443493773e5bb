//! All ops on the GPU.

use std::sync::Arc;

use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::options::OrderSwap;
use super::roles::Needs;
use super::route_builder::RouteBuilder;
use crate::chunk::ChunkShape;
use crate::error::PlanError;
use crate::route::Route;

/// All ops on the GPU, in one stage: T = T_gpu(all), one term of the solver's objective
/// ([`solve`](crate::solve)).
#[derive(Clone, Copy, Debug, Default)]
pub struct GpuOnly;

pub(super) const ENTRY: StrategyEntry =
    builtin("gpu-only", "all ops on the GPU", &[], |_, _| Arc::new(GpuOnly));

impl Strategy for GpuOnly {
    fn name(&self) -> &str {
        "gpu-only"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let gpu = Needs { strategy: self.name(), devices: input.devices }.gpu()?;
        let mut stages = RouteBuilder::new(input, shape).order_swap(OrderSwap::Off);
        stages.on(gpu, stages.nodes());
        stages.finish("the GPU runs every op".to_owned())
    }
}
