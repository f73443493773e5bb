//! Matmuls fused with what comes before and after them.

use std::ops::Range;

use super::fusion_context::{FusionContext, Norm};
use crate::context::Cpu;
use crate::gemm::{GemvPlan, MATMULS_MAX, NextDispatch};
use crate::loops::quantize::QuantScheme;
use lapwing_model::formats::DType;
use lapwing_model::graph::{Node, ValueId};
use lapwing_model::op::{Activation, Op};
use lapwing_model::part::Part;

/// Consecutive nodes: an optional norm, matmuls of its result (or of one value), and an optional
/// tail: a residual added to a single matmul, or the gated activation of two. Nothing else reads
/// the intermediate values. A single matmul counts too.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FusedMatmul {
    pub(super) norm: Option<Norm>,
    pub matmuls: Range<usize>,
    pub(super) tail: Option<Tail>,
    /// The only output and the format of the weights that read it, if a single matmul of the next
    /// fusion is its only reader.
    pub(super) quantized_output: Option<(ValueId, DType)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tail {
    /// `residual` is the index of the last node's input.
    AddResidual { residual: usize },
    /// `gate` and `up` are nodes.
    GatedActivation { activation: Activation, gate: usize, up: usize },
}

impl FusedMatmul {
    /// The fusion that begins with a node, if any.
    pub(super) fn at(context: &FusionContext<'_>, start: usize) -> Option<FusedMatmul> {
        let mut fused = FusedMatmul::of(context, start)?;
        fused.quantized_output = FusedMatmul::of(context, fused.nodes().end)
            .and_then(|next| fused.output_read_by(context, &next));
        Some(fused)
    }

    /// As [`FusedMatmul::at`], without the next fusion.
    fn of(context: &FusionContext<'_>, start: usize) -> Option<FusedMatmul> {
        let nodes = context.graph.nodes();
        let norm = context.norm(nodes.get(start)?);
        let (first, input) = match norm {
            Some(_) => (start + 1, nodes[start].output),
            None => (start, *nodes[start].inputs.first()?),
        };
        let is_matmul =
            |node: &&Node| matches!(node.op, Op::MatMul { .. }) && node.inputs[0] == input;
        let count = nodes[first..].iter().take(MATMULS_MAX).take_while(is_matmul).count();
        if count == 0 {
            return None;
        }
        let mut fused =
            FusedMatmul { norm, matmuls: first..first + count, tail: None, quantized_output: None };
        fused.tail = fused.tail_of(context);
        let needs_norm = norm.is_some() && !context.is_dead_after(input, fused.nodes());
        (!needs_norm).then_some(fused)
    }

    /// [`FusedMatmul::quantized_output`] if `next` is the next fusion.
    fn output_read_by(
        &self,
        context: &FusionContext<'_>,
        next: &FusedMatmul,
    ) -> Option<(ValueId, DType)> {
        let value = ValueId(self.written().start);
        let readers = &context.graph.nodes()[next.nodes()];
        let reads = readers.iter().flat_map(|node| &node.inputs).filter(|id| **id == value).count();
        let reader = next.matmuls.start;
        let alone = self.written().len() == 1
            && next.norm.is_none()
            && next.matmuls.len() == 1
            && context.graph.nodes()[reader].inputs[0] == value
            && reads == 1
            && context.is_dead_after(value, next.nodes());
        alone.then(|| (value, context.format(reader)))
    }

    /// As [`Fusion::fits`](super::fusion::Fusion::fits).
    pub(super) fn fits(&self, end: usize, part: &Part, writes: &[ValueId]) -> bool {
        let (nodes, written) = (self.nodes(), self.written());
        nodes.end <= end
            && (self.norm.is_none() || part.features.is_whole())
            && writes.iter().all(|id| !nodes.contains(&id.0) || written.contains(&id.0))
    }

    /// Index of the last node's input that is added to the matmul.
    pub(super) fn residual(&self) -> Option<usize> {
        match self.tail? {
            Tail::AddResidual { residual } => Some(residual),
            Tail::GatedActivation { .. } => None,
        }
    }

    /// All nodes.
    pub(super) fn nodes(&self) -> Range<usize> {
        let start = self.matmuls.start - usize::from(self.norm.is_some());
        start..self.matmuls.end + usize::from(self.tail.is_some())
    }

    /// The nodes whose values are written.
    pub(super) fn written(&self) -> Range<usize> {
        match self.tail {
            Some(_) => self.matmuls.end..self.matmuls.end + 1,
            None => self.matmuls.clone(),
        }
    }

    /// The weights that its matmuls read, all channels.
    pub(super) fn next_dispatch<'a>(&self, context: &FusionContext<'a>) -> NextDispatch<'a> {
        let is_gated = matches!(self.tail, Some(Tail::GatedActivation { .. }));
        let matmuls = match self.tail {
            Some(Tail::GatedActivation { gate, .. }) => gate..gate + 1,
            _ => self.matmuls.clone(),
        };
        let mut weights = [const { None }; MATMULS_MAX];
        for (to, node) in weights.iter_mut().zip(matmuls) {
            *to = Some(context.matmul(node).0.all());
        }
        NextDispatch { weights, is_gated, ..NextDispatch::default() }
    }

    fn tail_of(&self, context: &FusionContext<'_>) -> Option<Tail> {
        let Range { start, end: at } = self.matmuls;
        let node = context.graph.nodes().get(at)?;
        // Value ids are the ids of the nodes that write them.
        let is_dead_after = |node| context.is_dead_after(ValueId(node), start..at + 1);
        match node.op {
            Op::Add if self.matmuls.len() == 1 && is_dead_after(start) => {
                let residual = node.inputs.iter().position(|input| input.0 != start)?;
                // The fusion's own norm is not written, so it cannot be the residual.
                let is_norm = self.norm.is_some() && node.inputs[residual].0 + 1 == start;
                (!is_norm).then_some(Tail::AddResidual { residual })
            }
            Op::Gated(activation) if self.matmuls.len() == 2 => {
                let (gate, up) = (node.inputs[0].0, node.inputs[1].0);
                let both = [(start, start + 1), (start + 1, start)].contains(&(gate, up));
                let scheme = |node| QuantScheme::of_format(context.format(node));
                let is_one =
                    both && is_dead_after(gate) && is_dead_after(up) && scheme(gate) == scheme(up);
                is_one.then_some(Tail::GatedActivation { activation, gate, up })
            }
            _ => None,
        }
    }
}

/// Task divisions of the fusion's matmuls for one row.
#[derive(Debug)]
pub(super) struct GemvPlans {
    f32_output: GemvPlan,
    /// For an output that is quantised on the fly.
    quantized_output: Option<GemvPlan>,
}

impl GemvPlans {
    pub(super) fn of(cpu: &Cpu, fused: &FusedMatmul, context: &FusionContext<'_>) -> GemvPlans {
        let next = fused.next_dispatch(context);
        let output_scheme = fused.quantized_output.and_then(|(_, format)| cpu.block_scheme(format));
        let quantized_output = output_scheme
            .map(|scheme| NextDispatch { output_scheme: Some(scheme), ..next.clone() });
        GemvPlans {
            f32_output: next.gemv_plan(cpu),
            quantized_output: quantized_output.map(|next| next.gemv_plan(cpu)),
        }
    }

    pub(super) fn quantized_output(&self, output_scheme: Option<QuantScheme>) -> Option<&GemvPlan> {
        match output_scheme {
            Some(_) => self.quantized_output.as_ref(),
            None => Some(&self.f32_output),
        }
    }
}
