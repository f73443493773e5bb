//! The output channels of every matmul divided by a ratio.

use std::sync::Arc;

use super::cut::{ChannelDivision, fastest_devices};
use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::options::{OrderSwap, Ratio};
use super::proportion::Proportion;
use super::roles::Needs;
use super::route_builder::RouteBuilder;
use super::sizes;
use crate::chunk::ChunkShape;
use crate::error::PlanError;
use crate::phase::Phase;
use crate::route::Route;

/// A row cut (see `cut.rs`) of every matmul, with the element-wise ops on its output, by a fixed
/// ratio: between NPU and GPU, NPU and CPU, GPU and CPU, or all three. It also applies to decode,
/// where two processors reach more memory bandwidth than one. Without a ratio, the two fastest
/// processors divide prefill by the default ratio, and each matmul of a decode step in proportion to
/// the predicted rates at which they read its weights: all parts end together (HeteroInfer,
/// SOSP 2025).
///
/// T = Σ_matmuls max(T_npu(p₁), T_gpu(p₂)) + T_sync + T_copy, with p₁ + p₂ = all. Cuts are
/// aligned to 32 output channels. The NPU runs its rows in several standard graphs with little
/// padding. All other ops, and in prefill the matmuls of selected rows, run on the GPU, or on the
/// CPU if there is no GPU.
#[derive(Clone, Debug, Default)]
pub struct RowCut {
    /// Units of each processor; `None` for the default of each phase.
    pub ratio: Option<Ratio>,
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

pub(super) const ENTRY: StrategyEntry = builtin(
    "row-cut",
    "output channels of every matmul divided between devices, also in decode",
    &[],
    |o, _| Arc::new(RowCut { ratio: o.ratio.clone(), order_swap: o.order_swap }),
);

impl Strategy for RowCut {
    fn name(&self) -> &str {
        "row-cut"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let mut devices = fastest_devices(self.name(), input)?;
        let by_speed = self.ratio.is_none() && shape.phase == Phase::Decode;
        let ratio = self.ratio.clone().unwrap_or_default();
        devices.truncate(ratio.units().len());
        let other = Needs { strategy: self.name(), devices: input.devices }.helper()?;
        let mut stages = RouteBuilder::new(input, shape).order_swap(self.order_swap);
        let names: Vec<&str> =
            devices.iter().map(|device| input.devices[device.0].name.as_str()).collect();
        let (names, proportion) = (names.join(" ‖ "), Proportion::of(&ratio, devices.len()));
        let (how, proportion) = match by_speed {
            true => ("in proportion to predicted speeds".to_owned(), Proportion::Speed),
            false => (ratio.to_string(), proportion),
        };
        let reason = format!("output channels of every matmul divided {how} over {names}");
        ChannelDivision { devices, proportion, other, graphs: sizes::multi }.divide(&mut stages);
        stages.finish(reason)
    }
}
