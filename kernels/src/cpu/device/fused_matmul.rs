//! Products that are computed together, with what comes before and after them.

use std::ops::Range;

use super::fusion_context::{FusionContext, Norm};
use crate::cpu::context::Cpu;
use crate::cpu::gemm::{GemvPlan, MATMULS_MAX, NextDispatch};
use crate::cpu::loops::quantize::QuantScheme;
use crate::graph::{Node, ValueId};
use crate::op::{Activation, Op};
use crate::part::Part;
use crate::quant::DType;

/// Nodes that follow each other: a norm (or none), products of its result (or of one value), and
/// a residual added to the only product or the gate of the only two (or neither); also a product
/// alone. Nothing else reads what lies between them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FusedMatmul {
    pub(super) norm: Option<Norm>,
    pub(super) products: Range<usize>,
    pub(super) tail: Option<Tail>,
    /// The only result, if the only product of the next group alone reads it, and the format of
    /// that product's weights.
    pub(super) quantized_output: Option<(ValueId, DType)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tail {
    /// The residual is the last node's input of that number.
    AddResidual { residual: usize },
    /// Nodes of the products.
    GatedActivation { activation: Activation, gate: usize, up: usize },
}

impl FusedMatmul {
    /// The group that begins with a node, if any does.
    pub(super) fn at(context: &FusionContext<'_>, start: usize) -> Option<FusedMatmul> {
        let mut group = FusedMatmul::of(context, start)?;
        group.quantized_output = FusedMatmul::of(context, group.nodes().end)
            .and_then(|next| group.read_by(context, &next));
        Some(group)
    }

    /// As [`FusedMatmul::at`], not knowing the next.
    fn of(context: &FusionContext<'_>, start: usize) -> Option<FusedMatmul> {
        let nodes = context.graph.nodes();
        let norm = context.norm(nodes.get(start)?);
        let (first, input) = match norm {
            Some(_) => (start + 1, nodes[start].output),
            None => (start, *nodes[start].inputs.first()?),
        };
        let is_product =
            |node: &&Node| matches!(node.op, Op::MatMul { .. }) && node.inputs[0] == input;
        let count = nodes[first..].iter().take(MATMULS_MAX).take_while(is_product).count();
        if count == 0 {
            return None;
        }
        let mut group = FusedMatmul {
            norm,
            products: first..first + count,
            tail: None,
            quantized_output: None,
        };
        group.tail = group.tail_of(context);
        let needs_norm = norm.is_some() && !context.is_last_read(input, group.nodes());
        (!needs_norm).then_some(group)
    }

    /// As [`FusedMatmul::quantized_output`], if `next` is the next.
    fn read_by(&self, context: &FusionContext<'_>, next: &FusedMatmul) -> Option<(ValueId, DType)> {
        let value = ValueId(self.written().start);
        let readers = &context.graph.nodes()[next.nodes()];
        let reads = readers.iter().flat_map(|node| &node.inputs).filter(|id| **id == value).count();
        let product = next.products.start;
        let alone = self.written().len() == 1
            && next.norm.is_none()
            && next.products.len() == 1
            && context.graph.nodes()[product].inputs[0] == value
            && reads == 1
            && context.is_last_read(value, next.nodes());
        alone.then(|| (value, context.format(product)))
    }

    /// As [`Fusion::fits`].
    pub(super) fn fits(&self, end: usize, part: &Part, writes: &[ValueId]) -> bool {
        let (nodes, written) = (self.nodes(), self.written());
        nodes.end <= end
            && (self.norm.is_none() || part.features.is_whole())
            && writes.iter().all(|id| !nodes.contains(&id.0) || written.contains(&id.0))
    }

    /// The last node's input that the only product is added to.
    pub(super) fn residual(&self) -> Option<usize> {
        match self.tail? {
            Tail::AddResidual { residual } => Some(residual),
            Tail::GatedActivation { .. } => None,
        }
    }

    /// Its nodes.
    pub(super) fn nodes(&self) -> Range<usize> {
        let start = self.products.start - usize::from(self.norm.is_some());
        start..self.products.end + usize::from(self.tail.is_some())
    }

    /// Those of its nodes whose values are written.
    pub(super) fn written(&self) -> Range<usize> {
        match self.tail {
            Some(_) => self.products.end..self.products.end + 1,
            None => self.products.clone(),
        }
    }

    /// What its products read, whole.
    pub(super) fn upcoming<'a>(&self, context: &FusionContext<'a>) -> NextDispatch<'a> {
        let is_gated = matches!(self.tail, Some(Tail::GatedActivation { .. }));
        let products = match self.tail {
            Some(Tail::GatedActivation { gate, .. }) => gate..gate + 1,
            _ => self.products.clone(),
        };
        let mut weights = [const { None }; MATMULS_MAX];
        for (to, product) in weights.iter_mut().zip(products) {
            *to = Some(context.product(product).0.all());
        }
        NextDispatch { weights, is_gated, ..NextDispatch::default() }
    }

    fn tail_of(&self, context: &FusionContext<'_>) -> Option<Tail> {
        let Range { start, end: at } = self.products;
        let node = context.graph.nodes().get(at)?;
        // Values are numbered as the nodes that write them.
        let is_last_read = |product| context.is_last_read(ValueId(product), start..at + 1);
        match node.op {
            Op::Add if self.products.len() == 1 && is_last_read(start) => {
                let residual = node.inputs.iter().position(|input| input.0 != start)?;
                // The group's own norm is not written.
                let is_norm = self.norm.is_some() && node.inputs[residual].0 + 1 == start;
                (!is_norm).then_some(Tail::AddResidual { residual })
            }
            Op::Gated(activation) if self.products.len() == 2 => {
                let (gate, up) = (node.inputs[0].0, node.inputs[1].0);
                let both = [(start, start + 1), (start + 1, start)].contains(&(gate, up));
                let kind = |product| QuantScheme::of_format(context.format(product));
                let is_one =
                    both && is_last_read(gate) && is_last_read(up) && kind(gate) == kind(up);
                is_one.then_some(Tail::GatedActivation { activation, gate, up })
            }
            _ => None,
        }
    }
}

/// GemmTasks of a group of products for one row.
#[derive(Debug)]
pub(super) struct GemvPlans {
    plain: GemvPlan,
    /// Where the result is made in the output_scheme of [`FusedMatmul::quantized_output`] instead.
    quantized_output: Option<GemvPlan>,
}

impl GemvPlans {
    pub(super) fn of(cpu: &Cpu, group: &FusedMatmul, context: &FusionContext<'_>) -> GemvPlans {
        let products = group.upcoming(context);
        let output_scheme = group.quantized_output.and_then(|(_, format)| cpu.quant_scheme(format));
        let quantized_output = output_scheme
            .map(|kind| NextDispatch { output_scheme: Some(kind), ..products.clone() });
        GemvPlans {
            plain: products.gemv_plan(cpu),
            quantized_output: quantized_output.map(|products| products.gemv_plan(cpu)),
        }
    }

    pub(super) fn quantized_output(&self, output_scheme: Option<QuantScheme>) -> Option<&GemvPlan> {
        match output_scheme {
            Some(_) => self.quantized_output.as_ref(),
            None => Some(&self.plain),
        }
    }
}
