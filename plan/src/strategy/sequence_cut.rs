//! Tokens divided at one standard size.

use std::sync::Arc;

use super::cut::TokenCut;
use super::options::OrderSwap;
use super::stages::Stages;
use super::static_npu::StaticNpu;
use super::{ChunkShape, PlanInput, Strategy, sizes};
use crate::Phase;
use crate::{PlanError, Route};

/// The NPU takes as many rows as the largest standard size within the chunk, the GPU (without one,
/// the CPU) the rest, at the same time: 300 = 256 ‖ 44 (S2-29). Without an NPU the GPU and the CPU
/// divide them. T = Σ_runs max(T_npu(s), T_gpu(S − s)) + T_sync + T_copy, s = max {s : s ≤ S}.
/// Every run of static ops is divided whole, so that parts join only before dynamic ops; these,
/// selected rows and decode run on the GPU, or on the CPU where there is no GPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct SequenceCut {
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

impl Strategy for SequenceCut {
    fn name(&self) -> &str {
        "sequence-cut"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let cut = TokenCut::of(self.name(), input)?;
        if shape.phase == Phase::Decode {
            return decode(self.name(), input, (&cut, shape));
        }
        let graphs: Vec<usize> =
            sizes::largest_within(shape.rows, &cut.sizes).into_iter().collect();
        let mut stages = Stages::new(input, shape, self.order_swap);
        let reason = cut.cut(&mut stages, &graphs);
        stages.finish(reason)
    }
}

/// Decode of the strategies that divide tokens.
pub(super) fn decode(
    strategy: &str,
    input: &PlanInput<'_>,
    (cut, shape): (&TokenCut, &ChunkShape),
) -> Result<Arc<Route>, PlanError> {
    let on = StaticNpu { strategy, input, npu: cut.main, helper: cut.other };
    on.decode(shape)
}
