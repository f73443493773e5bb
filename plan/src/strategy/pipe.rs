//! Several standard sizes in sequence, on the NPU alone.

use std::sync::Arc;

use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::options::OrderSwap;
use super::sizes;
use super::static_npu::StaticNpu;
use crate::chunk::ChunkShape;
use crate::error::PlanError;
use crate::route::Route;

/// Static ops on the NPU only, with the rows in several standard graphs and the tail padded to a
/// small one: 600 → 512 + 64 + 32. T = Σ_i T_npu(s_i) + T_dynamic + T_sync; Σ s_i is S rounded up to
/// a multiple of 32 if the sizes are the powers of two from 32. Dynamic ops, selected rows and
/// decode run on the GPU, or on the CPU if there is no GPU. A baseline of HeteroLLM
/// (arXiv 2501.14794).
#[derive(Clone, Copy, Debug, Default)]
pub struct Pipe {
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

pub(super) const ENTRY: StrategyEntry = builtin(
    "pipe",
    "static ops on the NPU in several standard sizes (600 = 512 + 64 + 32)",
    &[],
    |o, _| Arc::new(Pipe { order_swap: o.order_swap }),
);

impl Strategy for Pipe {
    fn name(&self) -> &str {
        "pipe"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let on = StaticNpu::of(self.name(), input)?;
        on.route(shape, self.order_swap, &sizes::multi(shape.rows, on.sizes()))
    }
}
