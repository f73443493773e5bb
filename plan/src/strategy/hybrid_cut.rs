//! Output channels divided, with the NPU's rows padded.

use std::sync::Arc;

use super::cut::{ChannelDivision, fastest_devices};
use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::options::{OrderSwap, Ratio};
use super::proportion::Proportion;
use super::roles::Needs;
use super::route_builder::RouteBuilder;
use super::sizes;
use super::static_npu::StaticNpu;
use crate::chunk::ChunkShape;
use crate::error::PlanError;
use crate::phase::Phase;
use crate::route::Route;

/// A row cut (see `cut.rs`) whose NPU part is padded to one next standard size; the GPU (the CPU if
/// there is no GPU) runs the other output channels of the unpadded rows. It suits lengths just above
/// a standard size, where the rest of a sequence cut is too small for the GPU.
///
/// T = Σ_matmuls max(T_npu(p₁, min {s : s ≥ S}), T_gpu(p₂, S)) + T_sync + T_copy. All other ops run
/// on the GPU, or on the CPU if there is no GPU; so does decode, where no row needs padding: use
/// `row-cut` there.
#[derive(Clone, Debug, Default)]
pub struct HybridCut {
    /// Units of each processor.
    pub ratio: Ratio,
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

pub(super) const ENTRY: StrategyEntry = builtin(
    "hybrid-cut",
    "output channels divided, the NPU's rows padded to the next standard size",
    &[],
    |o, _| {
        let ratio = o.ratio.clone().unwrap_or_default();
        Arc::new(HybridCut { ratio, order_swap: o.order_swap })
    },
);

impl Strategy for HybridCut {
    fn name(&self) -> &str {
        "hybrid-cut"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let on = StaticNpu::of(self.name(), input)?;
        if shape.phase == Phase::Decode {
            return on.decode(shape);
        }
        let mut devices = fastest_devices(self.name(), input)?;
        devices.truncate(self.ratio.units().len());
        let other = Needs { strategy: self.name(), devices: input.devices }.helper()?;
        let mut stages = RouteBuilder::new(input, shape).order_swap(self.order_swap);
        let names: Vec<&str> =
            devices.iter().map(|device| input.devices[device.0].name.as_str()).collect();
        let padded = sizes::sum(&sizes::padded(shape.rows, on.sizes()));
        let (rows, ratio, names) = (shape.rows, &self.ratio, names.join(" ‖ "));
        let reason =
            format!("{rows} rows padded to {padded}, output channels divided {ratio} over {names}");
        let proportion = Proportion::of(&self.ratio, devices.len());
        ChannelDivision { devices, proportion, other, graphs: sizes::padded }.divide(&mut stages);
        stages.finish(reason)
    }
}
