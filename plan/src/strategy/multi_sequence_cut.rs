//! Rows divided: several standard sizes on one device, the rest on another.

use std::sync::Arc;

use super::cut::RowDivision;
use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::options::OrderSwap;
use super::route_builder::RouteBuilder;
use super::sizes;
use crate::chunk::ChunkShape;
use crate::error::PlanError;
use crate::phase::Phase;
use crate::registry::Parameter;
use crate::route::Route;

/// A sequence cut (see `cut.rs`) with several standard sizes: the NPU runs them one after another
/// without padding, while the GPU (the CPU if there is no GPU) runs the rest: 600 = 512 + 32 ‖ 56.
/// Without an NPU, the GPU and the CPU divide the rows.
///
/// T = Σ_runs max(Σ_i T_npu(s_i), T_gpu(S − Σ s_i)) + T_sync + T_copy. Sizes are added until at most
/// `edge_rows` rows remain; the last size is the smallest that achieves this. Undivided ops and
/// decode run where `sequence-cut` runs them.
#[derive(Clone, Copy, Debug)]
pub struct MultiSequenceCut {
    /// Maximum rows left to the helper as long as a standard size fits.
    pub edge_rows: usize,
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

impl MultiSequenceCut {
    /// 64 rows, with which 600 rows are cut as HeteroLLM (arXiv 2501.14794) cuts them: 512 + 32 ‖ 56.
    pub const EDGE_ROWS: usize = 64;
}

impl Default for MultiSequenceCut {
    fn default() -> MultiSequenceCut {
        let edge_rows = MultiSequenceCut::EDGE_ROWS;
        MultiSequenceCut { edge_rows, order_swap: OrderSwap::default() }
    }
}

pub(super) const ENTRY: StrategyEntry = builtin(
    "multi-sequence-cut",
    "rows divided, with several standard sizes on the NPU (600 = 512 + 32 ‖ 56)",
    &[Parameter::new(
        "edge-rows",
        "maximum rows left to the helper as long as a standard size fits",
        MultiSequenceCut::EDGE_ROWS as f64,
        0.0..=1e6,
    )],
    |o, p| {
        let edge_rows = p.count_or("edge-rows", o.edge_rows);
        Arc::new(MultiSequenceCut { edge_rows, order_swap: o.order_swap })
    },
);

impl Strategy for MultiSequenceCut {
    fn name(&self) -> &str {
        "multi-sequence-cut"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let division = RowDivision::of(self.name(), input)?;
        if shape.phase == Phase::Decode {
            return division.decode(self.name(), input, shape);
        }
        let graphs = sizes::multi_within(shape.rows, &division.sizes, self.edge_rows);
        let mut stages = RouteBuilder::new(input, shape).order_swap(self.order_swap);
        let reason = division.divide(&mut stages, &graphs);
        stages.finish(reason)
    }
}
