//! What the strategies with all static ops on the NPU share.

use std::sync::Arc;

use super::options::OrderSwap;
use super::roles::Needs;
use super::stages::Stages;
use super::{ChunkShape, PlanInput, sizes};
use crate::Phase;
use crate::{DeviceId, PlanError, Route};

/// Static ops of a prompt on the NPU; everything else, and decode, on its helper: the GPU, or the
/// CPU where there is no GPU.
pub(crate) struct StaticNpu<'a> {
    /// Name of the strategy.
    pub(crate) strategy: &'a str,
    /// What it looks at.
    pub(crate) input: &'a PlanInput<'a>,
    /// NPU.
    pub(crate) npu: DeviceId,
    /// Its helper.
    pub(crate) helper: DeviceId,
}

impl<'a> StaticNpu<'a> {
    /// Finds the devices.
    pub(crate) fn of(strategy: &'a str, input: &'a PlanInput<'a>) -> Result<Self, PlanError> {
        let needs = Needs { strategy, devices: input.devices };
        Ok(StaticNpu { strategy, input, npu: needs.npu()?, helper: needs.helper()? })
    }

    /// Row counts of the NPU's graphs.
    pub(crate) fn sizes(&self) -> &'a [usize] {
        &self.input.devices[self.npu.0].sizes
    }

    /// The smallest standard size of at least that many rows; the largest, if there is none.
    pub(crate) fn size_for(&self, rows: usize) -> usize {
        let sizes = self.sizes();
        sizes.iter().find(|size| **size >= rows).or(sizes.last()).copied().unwrap_or(1)
    }

    /// Everything on the helper.
    pub(crate) fn decode(&self, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let mut stages = Stages::new(self.input, shape, OrderSwap::Off);
        stages.on(self.helper, stages.nodes());
        let helper = &self.input.devices[self.helper.0].name;
        stages.finish(format!("'{}' divides prompts only; decode runs on {helper}", self.strategy))
    }

    /// The route: the prompt's static ops in those graphs.
    pub(crate) fn route(
        &self,
        shape: &ChunkShape,
        swap: OrderSwap,
        graphs: &[usize],
    ) -> Result<Arc<Route>, PlanError> {
        if shape.phase == Phase::Decode {
            return self.decode(shape);
        }
        let mut stages = Stages::new(self.input, shape, swap);
        stages.static_on_npu(self.npu, self.helper, graphs);
        stages.finish(self.reason(shape, graphs))
    }

    /// What is where.
    pub(crate) fn reason(&self, shape: &ChunkShape, graphs: &[usize]) -> String {
        let name = |device: DeviceId| &self.input.devices[device.0].name;
        let (npu, helper) = (name(self.npu), name(self.helper));
        let held = sizes::sum(graphs);
        format!("{} rows in graphs of {held} on {npu}, dynamic ops on {helper}", shape.rows)
    }
}
