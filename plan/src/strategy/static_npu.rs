//! Helper of the strategies that run all static ops on the NPU.

use std::sync::Arc;

use super::interface::PlanInput;
use super::options::OrderSwap;
use super::roles::Needs;
use super::route_builder::RouteBuilder;
use super::sizes;
use crate::chunk::ChunkShape;
use crate::device::DeviceId;
use crate::error::PlanError;
use crate::phase::Phase;
use crate::route::Route;

/// Static ops of prefill on the NPU; all other ops, and decode, on its helper: the GPU, or the CPU
/// if there is no GPU.
pub(crate) struct StaticNpu<'a> {
    /// Name of the strategy.
    pub(crate) strategy: &'a str,
    /// Input of the strategy.
    pub(crate) input: &'a PlanInput<'a>,
    /// The NPU.
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

    /// Row counts of the NPU's graphs, ascending.
    pub(crate) fn sizes(&self) -> &'a [usize] {
        &self.input.devices[self.npu.0].sizes
    }

    /// The smallest standard size, from 32 rows on, of at least `rows` rows, or the largest size if none is enough.
    pub(crate) fn size_for(&self, rows: usize) -> usize {
        let sizes = sizes::for_rows(usize::MAX, self.sizes());
        sizes.iter().find(|size| **size >= rows).or(sizes.last()).copied().unwrap_or(1)
    }

    /// A route with every op on the helper.
    pub(crate) fn decode(&self, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let mut stages = RouteBuilder::new(self.input, shape).order_swap(OrderSwap::Off);
        stages.on(self.helper, stages.nodes());
        let helper = &self.input.devices[self.helper.0].name;
        stages.finish(format!("'{}' affects prefill only; decode runs on {helper}", self.strategy))
    }

    /// A route with the static ops of prefill in graphs of these sizes.
    pub(crate) fn route(
        &self,
        shape: &ChunkShape,
        swap: OrderSwap,
        graphs: &[usize],
    ) -> Result<Arc<Route>, PlanError> {
        if shape.phase == Phase::Decode {
            return self.decode(shape);
        }
        let mut stages = RouteBuilder::new(self.input, shape).order_swap(swap);
        stages.static_on_npu(self.npu, self.helper, graphs);
        stages.finish(self.reason(shape, graphs))
    }

    /// The graph sizes and devices of a prefill route, in one line.
    pub(crate) fn reason(&self, shape: &ChunkShape, graphs: &[usize]) -> String {
        let name = |device: DeviceId| &self.input.devices[device.0].name;
        let (npu, helper) = (name(self.npu), name(self.helper));
        let held = sizes::sum(graphs);
        format!("{} rows in graphs of {held} on {npu}, dynamic ops on {helper}", shape.rows)
    }
}
