//! What threads will read after the present nodes, and in which form they need a result.

use std::ops::Range;

use super::CpuDevice;
use super::fused_matmul::FusedMatmul;
use super::fusion::Fusion;
use crate::gemm::{GemvPlan, NextDispatch};
use crate::loops::quantize::QuantScheme;
use lapwing_model::graph::ValueId;
use lapwing_model::op::Op;
use lapwing_model::part::Part;

impl CpuDevice {
    /// The scheme in which the next fusion takes the only output of `fused`, if the output may be
    /// quantised on the fly: nothing else reads it, and its columns make enough tasks.
    pub(super) fn output_scheme(
        &self,
        fused: &FusedMatmul,
        end: usize,
        part: &Part,
        writes: &[ValueId],
    ) -> Option<QuantScheme> {
        const TASKS_PER_THREAD: usize = 3;
        let Fusion::Matmul(next) = self.fusions.get(fused.nodes().end)?.as_ref()? else {
            return None;
        };
        let (value, format) = fused.quantized_output?;
        let scheme = self.model.cpu.block_scheme(format)?;
        let tasks = self.model.graph.value(value).width / scheme.columns();
        let fits = next.fits(end, part, writes) && part.features.is_whole();
        (fits
            && !writes.contains(&value)
            && tasks >= TASKS_PER_THREAD * self.model.cpu.pool().threads())
        .then_some(scheme)
    }

    /// The weights of the first matmuls from node `from` on, or of the first of the stage if there
    /// are none, since the stage most likely runs again.
    pub(super) fn next_dispatch(
        &self,
        from: usize,
        stage: &Range<usize>,
        part: &Part,
        writes: &[ValueId],
    ) -> NextDispatch<'_> {
        let first = |from: usize| {
            self.next_matmuls.get(from).copied().flatten().filter(|node| *node < stage.end)
        };
        let Some(node) = first(from).or_else(|| first(stage.start)) else {
            return NextDispatch::default();
        };
        let Some(Fusion::Matmul(fused)) = &self.fusions[node] else {
            return NextDispatch::default();
        };
        let output_scheme = self.output_scheme(fused, stage.end, part, writes);
        let gemv_plan = self.gemv_plan(node, output_scheme);
        NextDispatch { output_scheme, gemv_plan, ..fused.next_dispatch(&self.model.context()) }
    }

    /// The weights of the next matmuls after a node with experts; nothing after other ops.
    pub(super) fn after_experts(
        &self,
        node: usize,
        stage: &Range<usize>,
        part: &Part,
        writes: &[ValueId],
    ) -> NextDispatch<'_> {
        match self.model.graph.nodes()[node].op {
            Op::Experts(_) => self.next_dispatch(node + 1, stage, part, writes),
            _ => NextDispatch::default(),
        }
    }

    /// Division into tasks of the matmuls of the fusion that begins with a node, for one row.
    pub(super) fn gemv_plan(
        &self,
        node: usize,
        output_scheme: Option<QuantScheme>,
    ) -> Option<&GemvPlan> {
        self.gemv_plans[node].as_ref()?.quantized_output(output_scheme)
    }
}
