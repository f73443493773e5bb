//! Padding to the next standard size.

use std::sync::Arc;

use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::options::OrderSwap;
use super::sizes;
use super::static_npu::StaticNpu;
use crate::chunk::{ChunkShape, PromptRows};
use crate::error::PlanError;
use crate::route::Route;

/// Static ops on the NPU, with the chunk padded to one next standard size: 300 → 512.
/// T = T_npu(min {s : s ≥ S}) + T_dynamic + T_sync, so S = 525 costs as much as S = 1024. Dynamic
/// ops, selected rows and decode run on the GPU, or on the CPU if there is no GPU. A baseline of
/// HeteroLLM (arXiv 2501.14794).
#[derive(Clone, Copy, Debug, Default)]
pub struct NpuPadding {
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

pub(super) const ENTRY: StrategyEntry = builtin(
    "npu-padding",
    "static ops on the NPU, padded to the next standard size (300 to 512)",
    &[],
    |o, _| Arc::new(NpuPadding { order_swap: o.order_swap }),
);

impl Strategy for NpuPadding {
    fn name(&self) -> &str {
        "npu-padding"
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        // A longer prompt is cut into chunks of the largest graph size.
        let largest =
            StaticNpu::of(self.name(), input).ok().and_then(|s| s.sizes().last().copied());
        prompt.remaining.min(input.chunk_rows).min(largest.unwrap_or(usize::MAX))
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let on = StaticNpu::of(self.name(), input)?;
        on.route(shape, self.order_swap, &sizes::padded(shape.rows, on.sizes()))
    }
}
