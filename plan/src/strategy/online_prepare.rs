//! Graphs of the exact length, prepared when they are needed.

use std::sync::Arc;

use lapwing_kernels::part::Share;

use super::options::OrderSwap;
use super::stages::Stages;
use super::static_npu::StaticNpu;
use super::{ChunkShape, PlanInput, Strategy};
use crate::Phase;
use crate::{PlanError, Route};

/// Static ops on the NPU in graphs of the chunk's own length, rounded up to 32 rows, that are
/// prepared when the chunk arrives: no row is padded beyond the array, but each new length pays
/// T_prepare on the hot path (S2-47; 408 ms at S = 135, 2050 ms at S = 1000, S2-49).
/// T = T_prepare(⌈S⌉₃₂) + T_npu(⌈S⌉₃₂) + T_dynamic + T_sync. Dynamic ops, selected rows and decode
/// run on the GPU, or on the CPU where there is no GPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnlinePrepare {
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

impl Strategy for OnlinePrepare {
    fn name(&self) -> &str {
        "online-prepare"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let on = StaticNpu::of(self.name(), input)?;
        if shape.phase == Phase::Decode {
            return on.decode(shape);
        }
        let graphs = [shape.rows.next_multiple_of(Share::ALIGN)];
        let mut stages = Stages::new(input, shape, self.order_swap).on_the_spot();
        stages.static_on_npu(on.npu, on.helper, &graphs);
        let reason = on.reason(shape, &graphs);
        stages.finish(format!("{reason}, prepared when needed"))
    }
}
