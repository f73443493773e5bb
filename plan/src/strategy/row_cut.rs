//! The output channels of every matmul divided by a fixed ratio.

use std::sync::Arc;

use super::cut::{ChannelDivision, fastest_devices};
use super::interface::{PlanInput, Strategy};
use super::options::{OrderSwap, Ratio};
use super::roles::Needs;
use super::sizes;
use super::stages::Stages;
use crate::chunk::ChunkShape;
use crate::error::PlanError;
use crate::route::Route;

/// A row cut (see `cut.rs`) of every matmul, with the element-wise ops on its output, by a fixed
/// ratio: between NPU and GPU, NPU and CPU, GPU and CPU, or all three. It also applies to decode,
/// where two processors reach more memory bandwidth than one.
///
/// T = Σ_matmuls max(T_npu(p₁), T_gpu(p₂)) + T_sync + T_copy, with p₁ + p₂ = all. Cuts are
/// aligned to 32 output channels. The NPU runs its rows in several standard graphs with little
/// padding. All other ops, and in prefill the matmuls of selected rows, run on the GPU, or on the
/// CPU if there is no GPU.
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
        let devices = fastest_devices(self.name(), input)?;
        let lanes: Vec<_> = devices.into_iter().zip(self.ratio.units().iter().copied()).collect();
        let other = Needs { strategy: self.name(), devices: input.devices }.helper()?;
        let mut stages = Stages::new(input, shape, self.order_swap);
        let names: Vec<&str> =
            lanes.iter().map(|(d, _)| input.devices[d.0].name.as_str()).collect();
        let (ratio, names) = (&self.ratio, names.join(" ‖ "));
        let reason = format!("output channels of every matmul divided {ratio} over {names}");
        ChannelDivision { lanes, other, graphs: sizes::multi }.divide(&mut stages);
        stages.finish(reason)
    }
}
