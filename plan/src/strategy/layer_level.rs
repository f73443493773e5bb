//! Each op on the processor that suits its kind.

use std::sync::Arc;

use lapwing_kernels::op::Op;

use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::options::OrderSwap;
use super::route_builder::{RouteBuilder, is_static, runs};
use super::sizes;
use super::static_npu::StaticNpu;
use crate::chunk::ChunkShape;
use crate::error::PlanError;
use crate::phase::Phase;
use crate::route::Route;

/// Hetero-layer of HeteroLLM (arXiv 2501.14794). Matmuls run on the NPU; norms, gates, residual
/// adds, dynamic ops and all of decode run on the GPU, or on the CPU if there is no GPU. No stage is
/// divided: T = Σ_matmuls T_npu + Σ_others T_gpu + T_sync at each change of device. A chunk is
/// padded to one next standard size. The matmuls of selected rows do not run on the NPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct LayerLevel {
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

pub(super) const ENTRY: StrategyEntry = builtin(
    "layer-level",
    "matmuls on the NPU, other ops and decode on the GPU or CPU",
    &[],
    |o, _| Arc::new(LayerLevel { order_swap: o.order_swap }),
);

impl Strategy for LayerLevel {
    fn name(&self) -> &str {
        "layer-level"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let on = StaticNpu::of(self.name(), input)?;
        if shape.phase == Phase::Decode {
            return on.decode(shape);
        }
        let graph = input.graph;
        let graphs = sizes::padded(shape.rows, on.sizes());
        let mut stages = RouteBuilder::new(input, shape).order_swap(self.order_swap);
        let is_static_matmul = |node: usize| {
            matches!(graph.nodes()[node].op, Op::MatMul { .. }) && is_static(graph, node)
        };
        for (nodes, on_npu) in runs(stages.nodes(), is_static_matmul) {
            match on_npu {
                true => stages.on_npu(on.npu, nodes, &graphs),
                false => stages.on(on.helper, nodes),
            }
        }
        let (npu, helper) = (&input.devices[on.npu.0].name, &input.devices[on.helper.0].name);
        let held = sizes::sum(&graphs);
        let rows = shape.rows;
        let reason =
            format!("{rows} rows: matmuls in graphs of {held} on {npu}, the rest on {helper}");
        stages.finish(reason)
    }
}
