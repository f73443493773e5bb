//! Several standard sizes, one after another, on the NPU alone.

use std::sync::Arc;

use super::options::OrderSwap;
use super::static_npu::StaticNpu;
use super::{ChunkShape, PlanInput, Strategy, sizes};
use crate::{PlanError, Route};

/// Static ops on the NPU only, the chunk in several standard graphs, the tail padded to a smaller
/// one: 600 → 512 + 64 + 32 (S2-47). T = Σ_i T_npu(s_i) + T_dynamic + T_sync with
/// Σ s_i = ⌈S⌉₃₂ for sizes that are powers of two from 32 on. Dynamic ops, selected rows and decode
/// run on the GPU, or on the CPU where there is no GPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pipe {
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

impl Strategy for Pipe {
    fn name(&self) -> &str {
        "pipe"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let on = StaticNpu::of(self.name(), input)?;
        on.route(shape, self.order_swap, &sizes::multi(shape.rows, on.sizes()))
    }
}
