//! Padding to the next standard size.

use std::sync::Arc;

use super::options::OrderSwap;
use super::static_npu::StaticNpu;
use super::{ChunkShape, PlanInput, PromptRows, Strategy, sizes};
use crate::{PlanError, Route};

/// Static ops on the NPU, the whole chunk padded to ONE next standard size: 300 → 512 (S2-28,
/// S2-47). T = T_npu(min {s : s ≥ S}) + T_dynamic + T_sync, so S = 525 costs as much as 1024.
/// Dynamic ops, selected rows and decode run on the GPU, or on the CPU where there is no GPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct NpuPadding {
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

impl Strategy for NpuPadding {
    fn name(&self) -> &str {
        "npu-padding"
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        // Of a longer prompt, chunks as large as a graph can be.
        let largest =
            StaticNpu::of(self.name(), input).ok().and_then(|s| s.sizes().last().copied());
        prompt.due.min(input.chunk_rows).min(largest.unwrap_or(usize::MAX))
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let on = StaticNpu::of(self.name(), input)?;
        on.route(shape, self.order_swap, &sizes::padded(shape.rows, on.sizes()))
    }
}
