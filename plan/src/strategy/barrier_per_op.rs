//! Each op on its fastest device, with a barrier after each op.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{Batch, DeviceKind};

use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::options::OrderSwap;
use super::roles::Needs;
use super::route_builder::RouteBuilder;
use crate::chunk::ChunkShape;
use crate::device::{DeviceId, takes_rows};
use crate::error::PlanError;
use crate::route::Route;
use crate::stage::Stage;
use crate::time::Job;

/// Each op is a stage of its own, on the device that runs it fastest alone:
/// T = Σ_op (min_d T_d(op) + T_sync), so ops of a chunk never overlap. It models the bulk-synchronous
/// execution of GGML and is the baseline of the other strategies. The NPU runs its rows in several
/// standard graphs with little padding.
#[derive(Clone, Copy, Debug, Default)]
pub struct BarrierPerOp {
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

pub(super) const ENTRY: StrategyEntry = builtin(
    "barrier-per-op",
    "each op on its fastest device, with a barrier after each op",
    &[],
    |o, _| Arc::new(BarrierPerOp { order_swap: o.order_swap }),
);

impl Strategy for BarrierPerOp {
    fn name(&self) -> &str {
        "barrier-per-op"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let mut stages = RouteBuilder::new(input, shape).order_swap(self.order_swap);
        let batch = input.batch(shape);
        for node in stages.nodes() {
            stages.push_apart(self.best(input, shape, &batch, node..node + 1)?);
        }
        let reason = "each op on its fastest device, with a barrier after each op".to_owned();
        stages.finish(reason)
    }
}

impl BarrierPerOp {
    /// The node on its fastest device; the first of equally fast ones.
    fn best(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
        batch: &Batch,
        nodes: Range<usize>,
    ) -> Result<Stage, PlanError> {
        let op = &input.graph.nodes()[nodes.start].op;
        let mut best: Option<(Duration, Stage)> = None;
        for (at, info) in input.devices.iter().enumerate() {
            let mut stages = RouteBuilder::new(input, shape).order_swap(self.order_swap);
            if !info.runs(op) || !takes_rows(info, stages.rows(&nodes)) {
                continue;
            }
            stages.on(DeviceId(at), nodes.clone());
            for stage in stages.into_list() {
                let part = &stage.parts[0].part;
                let (first, end) = (nodes.start, nodes.end);
                let job = Job::alone(first..end, part, batch);
                let time = input.cost.job_time(DeviceId(at), &job);
                if best.as_ref().is_none_or(|(least, _)| time < *least) {
                    best = Some((time, stage));
                }
            }
        }
        let needs = Needs { strategy: self.name(), devices: input.devices };
        best.map(|(_, stage)| stage).ok_or_else(|| needs.missing(DeviceKind::Cpu))
    }
}
