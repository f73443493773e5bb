//! Every product's features divided.

use std::sync::Arc;

use super::cut::{FeatureCut, two_lanes};
use super::options::{OrderSwap, Ratio};
use super::roles::Needs;
use super::stages::Stages;
use super::{ChunkShape, PlanInput, Strategy, sizes};
use crate::{PlanError, Route};

/// The output features of every product, and of the element-wise ops on its result, are divided by
/// a stated ratio between the NPU and the GPU (without one, the CPU), or between GPU and CPU, or
/// among all three; also in decode, where two processors reach more bandwidth than one (S2-25,
/// S2-32): T = Σ_products max(T_npu^p₁, T_gpu^p₂) + T_sync + T_copy, p₁ + p₂ = all (S2-38).
/// Borders lie on multiples of 32 features. The NPU holds its rows in several standard graphs with
/// little padding. Everything that is no product runs on the GPU, or on the CPU without one; so do,
/// in prompts, the products of selected rows.
#[derive(Clone, Debug, Default)]
pub struct RowCut {
    /// Units of each processor.
    pub ratio: Ratio,
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

impl Strategy for RowCut {
    fn name(&self) -> &str {
        "row-cut"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let lanes = two_lanes(self.name(), input)?;
        let lanes: Vec<_> = lanes.into_iter().zip(self.ratio.units().iter().copied()).collect();
        let other = Needs { strategy: self.name(), devices: input.devices }.helper()?;
        let mut stages = Stages::new(input, shape, self.order_swap);
        let names: Vec<&str> =
            lanes.iter().map(|(d, _)| input.devices[d.0].name.as_str()).collect();
        let reason =
            format!("features of every product divided {} over {}", self.ratio, names.join(" ‖ "));
        FeatureCut { lanes, other, graphs: sizes::multi }.cut(&mut stages);
        stages.finish(reason)
    }
}
