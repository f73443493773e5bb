//! All ops on the CPU.

use std::sync::Arc;

use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::roles::Needs;
use crate::chunk::ChunkShape;
use crate::error::PlanError;
use crate::route::Route;
use crate::stage::Stage;

/// All ops on the CPU, in one stage, so a decode step costs one message. T = T_cpu(all).
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuOnly;

pub(super) const ENTRY: StrategyEntry =
    builtin("cpu-only", "all ops on the CPU", &[], |_, _| Arc::new(CpuOnly));

impl Strategy for CpuOnly {
    fn name(&self) -> &str {
        "cpu-only"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let device = Needs { strategy: self.name(), devices: input.devices }.cpu()?;
        let stage = Stage::whole(device, 0..input.graph.nodes().len());
        let reason = "the CPU runs every op".to_owned();
        Route::new(vec![stage], reason, None, input.route_for(shape))
    }
}
