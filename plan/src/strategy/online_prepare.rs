//! Graphs of the exact length, prepared on demand.

use std::sync::Arc;

use lapwing_kernels::part::Share;

use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::options::OrderSwap;
use super::route_builder::RouteBuilder;
use super::static_npu::StaticNpu;
use crate::chunk::ChunkShape;
use crate::error::PlanError;
use crate::phase::Phase;
use crate::route::Route;

/// Static ops on the NPU, in graphs of the chunk's own length rounded up to a multiple of 32 rows.
/// The graphs are prepared when the chunk arrives: padding is below 32 rows, but each new length
/// pays T_prepare before it runs (408 ms for S = 135 and 2050 ms for S = 1000 with Llama-3-8B on a
/// Snapdragon 8 Gen 3). T = T_prepare(S₃₂) + T_npu(S₃₂) + T_dynamic + T_sync, with S₃₂ = 32·⌈S/32⌉.
/// Dynamic ops, selected rows and decode run on the GPU, or on the CPU if there is no GPU. A
/// baseline of HeteroLLM (arXiv 2501.14794).
#[derive(Clone, Copy, Debug, Default)]
pub struct OnlinePrepare {
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

pub(super) const ENTRY: StrategyEntry = builtin(
    "online-prepare",
    "static ops on the NPU in graphs of the exact length, prepared on demand",
    &[],
    |o, _| Arc::new(OnlinePrepare { order_swap: o.order_swap }),
);

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
        let mut stages = RouteBuilder::new(input, shape).order_swap(self.order_swap).on_the_spot();
        stages.static_on_npu(on.npu, on.helper, &graphs);
        let reason = on.reason(shape, &graphs);
        stages.finish(format!("{reason}, graphs prepared on demand"))
    }
}
