//! Each op where its kind runs best.

use std::sync::Arc;

use lapwing_kernels::op::Op;

use super::options::OrderSwap;
use super::stages::{Stages, is_static, runs};
use super::static_npu::StaticNpu;
use super::{ChunkShape, PlanInput, Strategy, sizes};
use crate::Phase;
use crate::{PlanError, Route};

/// Matrix products on the NPU; norms, gates, sums and the dynamic ops on the GPU, or on the CPU
/// where there is no GPU; decode there only (S2-23). Nothing is divided:
/// T = Σ_products T_npu + Σ_others T_gpu + T_sync at each change. Chunks are padded to one next
/// standard size (S2-28); the products of selected rows stay beside the NPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct LayerLevel {
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

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
        let mut stages = Stages::new(input, shape, self.order_swap);
        let is_product = |node: usize| {
            matches!(graph.nodes()[node].op, Op::MatMul { .. }) && is_static(graph, node)
        };
        for (nodes, on_npu) in runs(stages.nodes(), is_product) {
            match on_npu {
                true => stages.on_npu(on.npu, nodes, &graphs),
                false => stages.on(on.helper, nodes),
            }
        }
        let (npu, helper) = (&input.devices[on.npu.0].name, &input.devices[on.helper.0].name);
        let held = sizes::sum(&graphs);
        let reason = format!(
            "{} rows: products in graphs of {held} on {npu}, the rest on {helper}",
            shape.rows
        );
        stages.finish(reason)
    }
}
