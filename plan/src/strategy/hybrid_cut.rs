//! Features divided, rows padded.

use std::sync::Arc;

use super::cut::{FeatureCut, two_lanes};
use super::options::{OrderSwap, Ratio};
use super::roles::Needs;
use super::stages::Stages;
use super::static_npu::StaticNpu;
use super::{ChunkShape, PlanInput, Strategy, sizes};
use crate::Phase;
use crate::{PlanError, Route};

/// The NPU takes a share of every product's features for the rows padded to ONE next standard
/// size, the GPU (without one, the CPU) the other features of the rows as they are: for lengths
/// just above a standard size, whose edge is too small for the GPU (S2-31, S2-51).
/// T = Σ_products max(T_npu^p₁(min {s : s ≥ S}), T_gpu^p₂(S)) + T_sync + T_copy. Everything else
/// runs on the GPU, or on the CPU without one; so does decode, which has no edge: there `row-cut`
/// divides.
#[derive(Clone, Debug, Default)]
pub struct HybridCut {
    /// Units of each processor.
    pub ratio: Ratio,
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

impl Strategy for HybridCut {
    fn name(&self) -> &str {
        "hybrid-cut"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let on = StaticNpu::of(self.name(), input)?;
        if shape.phase == Phase::Decode {
            return on.decode(shape);
        }
        let lanes = two_lanes(self.name(), input)?;
        let lanes: Vec<_> = lanes.into_iter().zip(self.ratio.units().iter().copied()).collect();
        let other = Needs { strategy: self.name(), devices: input.devices }.helper()?;
        let mut stages = Stages::new(input, shape, self.order_swap);
        let names: Vec<&str> =
            lanes.iter().map(|(d, _)| input.devices[d.0].name.as_str()).collect();
        let padded = sizes::sum(&sizes::padded(shape.rows, on.sizes()));
        let (rows, ratio, names) = (shape.rows, &self.ratio, names.join(" ‖ "));
        let reason =
            format!("{rows} rows padded to {padded}, features divided {ratio} over {names}");
        FeatureCut { lanes, other, graphs: sizes::padded }.cut(&mut stages);
        stages.finish(reason)
    }
}
