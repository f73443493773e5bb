//! Everything on the CPU.

use std::sync::Arc;

use lapwing_kernels::device::DeviceKind;

use super::roles::Needs;
use super::{ChunkShape, PlanInput, Strategy};
use crate::plan::{PlanError, Route, Stage};

/// Everything on the CPU: one stage, so a decode step costs one message. T = T_cpu^all. In an
/// engine without a CPU the GPU takes its place.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuOnly;

impl Strategy for CpuOnly {
    fn name(&self) -> &str {
        "cpu-only"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let device = Needs { strategy: self.name(), devices: input.devices }.host()?;
        let stage = Stage::whole(device, 0..input.graph.nodes().len());
        let reason = match input.devices[device.0].kind {
            DeviceKind::Cpu => "the CPU is the only device of this strategy".to_owned(),
            _ => "there is no CPU, and the GPU runs everything in its place".to_owned(),
        };
        Route::new(vec![stage], reason, None, input.route_for(shape))
    }
}
