//! Each block of ops on one device, with the least predicted time of the whole chain.

use std::sync::Arc;

use lapwing_kernels::device::DeviceKind;

use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::options::OrderSwap;
use super::roles::Needs;
use super::route_builder::RouteBuilder;
use crate::chunk::ChunkShape;
use crate::error::PlanError;
use crate::route::Route;

mod about;
mod chain;
mod kept;
mod priced;
mod search;

pub(super) use chain::Chain;
pub(crate) use kept::{Kept, request};
pub(crate) use search::PROMPT_PER_STEP;

/// Each block of ops on one device, with the least predicted time of the whole chain:
/// min over d₁ … d_n of Σ_i T(i, d_i) + Σ_{d_i ≠ d_{i−1}} (T_sync + T_copy)(d_{i−1}, d_i), over the devices that
/// can run block i; T_copy is the time to copy the values that are live between devices with different memories. Dynamic
/// programming over blocks × devices finds the exact minimum if the time of
/// a stage is its submission plus the sum of its nodes. The NPU runs its rows in several standard
/// graphs with little padding. No block is divided.
///
/// If what a device could compute is larger than its memory, blocks whose weights, keys and values the device keeps for all shapes
/// are chosen first, by predicted time within the memory; the chain has no others there.
#[derive(Clone, Copy, Debug, Default)]
pub struct AutoPlace {
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

pub(super) const ENTRY: StrategyEntry = builtin(
    "auto-place",
    "each block of ops on one device, with the least predicted time of the whole chain",
    &[],
    |o, _| Arc::new(AutoPlace { order_swap: o.order_swap }),
);

impl Strategy for AutoPlace {
    fn name(&self) -> &str {
        "auto-place"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let needs = Needs { strategy: self.name(), devices: input.devices };
        let missing = || needs.missing(DeviceKind::Cpu);
        let chain = Chain::new(input, shape, self.order_swap);
        let kept = Kept::of(input);
        let is_allowed =
            |block, device| kept.as_ref().is_none_or(|kept| kept.allows(block, device));
        let (total, devices) = chain.table().solve(is_allowed).ok_or_else(missing)?;
        let mut stages = RouteBuilder::new(input, shape).order_swap(self.order_swap);
        for (block, device) in devices.into_iter().enumerate() {
            stages.push(chain.stage(block, device).ok_or_else(missing)?);
        }
        let stages = stages.into_list();
        let mut reason = format!(
            "{} {}, the fastest chain of undivided blocks, by {}",
            stages.len(),
            if stages.len() == 1 { "stage" } else { "stages" },
            input.cost.source()
        );
        if let Some(kept) = kept {
            reason.push_str(&format!("; {}", kept.about()));
        }
        Route::new(stages, reason, Some(total), input.route_for(shape))
    }
}

#[cfg(test)]
mod tests;
