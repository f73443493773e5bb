//! Rows divided at one standard size.

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
use crate::route::Route;

/// A sequence cut (see `cut.rs`): the NPU runs as many rows as the largest standard size within the
/// chunk, while the GPU (the CPU if there is no GPU) runs the rest: 300 = 256 ‖ 44. Without an NPU,
/// the GPU and the CPU divide the rows.
///
/// T = Σ_runs max(T_npu(s), T_gpu(S − s)) + T_sync + T_copy, with s = max {s : s ≤ S}. A run of
/// static ops is divided as a whole, so parts are merged only before dynamic ops. Dynamic ops,
/// selected rows and decode run on the GPU, or on the CPU if there is no GPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct SequenceCut {
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

pub(super) const ENTRY: StrategyEntry =
    builtin("sequence-cut", "rows divided at one standard size (300 = 256 ‖ 44)", &[], |o, _| {
        Arc::new(SequenceCut { order_swap: o.order_swap })
    });

impl Strategy for SequenceCut {
    fn name(&self) -> &str {
        "sequence-cut"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let division = RowDivision::of(self.name(), input)?;
        if shape.phase == Phase::Decode {
            return division.decode(self.name(), input, shape);
        }
        let graphs: Vec<usize> =
            sizes::largest_within(shape.rows, &division.sizes).into_iter().collect();
        let mut stages = RouteBuilder::new(input, shape).order_swap(self.order_swap);
        let reason = division.divide(&mut stages, &graphs);
        stages.finish(reason)
    }
}
