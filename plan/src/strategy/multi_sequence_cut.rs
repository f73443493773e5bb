//! Tokens divided: several standard sizes on one device, the rest on another.

use std::sync::Arc;

use super::cut::TokenCut;
use super::options::{OrderSwap, StrategyOptions};
use super::sequence_cut::decode;
use super::stages::Stages;
use super::{ChunkShape, PlanInput, Strategy, sizes};
use crate::Phase;
use crate::{PlanError, Route};

/// The NPU takes several standard sizes one after another, without padding, the GPU (without one,
/// the CPU) the rest, at the same time: 600 = 512 + 32 ‖ 56 (S2-30). Without an NPU the GPU and the
/// CPU divide them. T = Σ_runs max(Σ_i T_npu(s_i), T_gpu(S − Σ s_i)) + T_sync + T_copy. Sizes are
/// added until at most `edge_rows` rows are left, the last one as small as that allows. What cannot
/// be divided, and decode, is placed as in `sequence-cut`.
#[derive(Clone, Copy, Debug)]
pub struct MultiSequenceCut {
    /// Most rows left to the helper while a standard size fits.
    pub edge_rows: usize,
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

impl Default for MultiSequenceCut {
    fn default() -> MultiSequenceCut {
        MultiSequenceCut { edge_rows: StrategyOptions::EDGE_ROWS, order_swap: OrderSwap::default() }
    }
}

impl Strategy for MultiSequenceCut {
    fn name(&self) -> &str {
        "multi-sequence-cut"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let cut = TokenCut::of(self.name(), input)?;
        if shape.phase == Phase::Decode {
            return decode(self.name(), input, (&cut, shape));
        }
        let graphs = sizes::multi_within(shape.rows, &cut.sizes, self.edge_rows);
        let mut stages = Stages::new(input, shape, self.order_swap);
        let reason = cut.cut(&mut stages, &graphs);
        stages.finish(reason)
    }
}
