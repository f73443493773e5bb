//! Fused nodes: which fusion begins with a node, whether a part of a stage can run it, and running
//! it. [`super::fused_matmul`] has the fusions of matmuls.

use std::borrow::Cow;
use std::ops::Range;

use super::fused_matmul::{FusedMatmul, Tail};
use super::fusion_context::{FusionContext, Norm};
use super::scratch::MatmulInputs;
use super::stage::Stage;
use crate::gemm::{
    Dispatch, Epilogue, GemvPlan, MATMULS_MAX, Matmul, NextDispatch, Product, matmuls,
};
use crate::kv_rows::ROTARY_DIM_MAX;
use crate::loops::quantize::QuantScheme;
use crate::quantize::InputSource;
use crate::rms_norm::add_rms_norm;
use lapwing_model::device::{DeviceError, Slot};
use lapwing_model::graph::ValueId;
use lapwing_model::op::Op;
use lapwing_model::part::Part;

/// Most nodes of a fusion: a norm, matmuls and a tail.
const NODES_MAX: usize = MATMULS_MAX + 2;

/// Nodes that are computed together.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fusion {
    /// Matmuls with what comes before and after them.
    Matmul(FusedMatmul),
    /// The rotation of keys (this node) and the attention that follows and is its only reader. Keys
    /// are rotated while they are written to their pages.
    RopeAttention(usize),
    /// A norm (`node`) and the sum that follows and is its only reader. `residual` is the index of
    /// the sum's other input.
    NormAdd { node: usize, norm: Norm, residual: usize },
}

impl Fusion {
    /// The fusion that begins with a node, if any.
    pub(super) fn at(context: &FusionContext<'_>, start: usize) -> Option<Fusion> {
        FusedMatmul::at(context, start).map(Fusion::Matmul).or_else(|| Fusion::pair(context, start))
    }

    /// Two nodes of which the second is the only reader of the first.
    fn pair(context: &FusionContext<'_>, start: usize) -> Option<Fusion> {
        let [first, second] = context.graph.nodes().get(start..start + 2)? else {
            return None;
        };
        let mut reads = second.inputs.iter().enumerate().filter(|(_, id)| **id == first.output);
        let (Some((read, _)), None) = (reads.next(), reads.next()) else { return None };
        if !context.is_dead_after(first.output, start..start + 2) {
            return None;
        }
        match (&first.op, &second.op) {
            (Op::Rope { heads, .. }, Op::Attention(_)) => {
                let fits = context.graph.value(first.output).width <= ROTARY_DIM_MAX * heads;
                (read == 1 && fits).then_some(Fusion::RopeAttention(start))
            }
            (Op::RmsNorm { .. }, Op::Add) => {
                let norm = context.norm(first)?;
                Some(Fusion::NormAdd { node: start, norm, residual: 1 - read })
            }
            _ => None,
        }
    }

    /// All nodes.
    pub(super) fn nodes(&self) -> Range<usize> {
        match self {
            Fusion::Matmul(fused) => fused.nodes(),
            Fusion::RopeAttention(node) | Fusion::NormAdd { node, .. } => *node..*node + 2,
        }
    }

    /// Whether a part of a stage that ends before node `end` can run it: the stage has all of its
    /// nodes, `writes` has no intermediate value, and the part has whole rows where they are
    /// needed.
    pub(super) fn fits(&self, end: usize, part: &Part, writes: &[ValueId]) -> bool {
        match self {
            Fusion::Matmul(fused) => fused.fits(end, part, writes),
            Fusion::RopeAttention(node) | Fusion::NormAdd { node, .. } => {
                node + 2 <= end && part.features.is_whole() && !writes.contains(&ValueId(*node))
            }
        }
    }

    /// The value that its last node may overwrite in place, because nothing else reads it.
    pub(super) fn accumulates_into(
        &self,
        context: &FusionContext<'_>,
        writes: &[ValueId],
    ) -> Option<ValueId> {
        let residual = match self {
            Fusion::Matmul(fused) => fused.residual()?,
            Fusion::RopeAttention(_) => return None,
            Fusion::NormAdd { residual, .. } => *residual,
        };
        let (nodes, all) = (context.graph.nodes(), self.nodes());
        let id = nodes[all.end - 1].inputs[residual];
        let is_input = nodes[all.start].inputs[0] == id;
        (!is_input && !writes.contains(&id) && context.is_dead_after(id, all.end - 1..all.end))
            .then_some(id)
    }
}

/// Arguments of a fusion of matmuls.
pub(super) struct FusedMatmulRun<'a> {
    pub(super) stage: Stage<'a>,
    pub(super) fused: &'a FusedMatmul,
    /// Scheme of the output, if it is quantised on the fly.
    pub(super) output_scheme: Option<QuantScheme>,
    /// The residual of the matmul, if it may be overwritten.
    pub(super) residual: Option<Slot>,
    /// Its task division for one row.
    pub(super) gemv_plan: Option<&'a GemvPlan>,
    /// Data that its threads will most likely read after its weights.
    pub(super) next_dispatch: NextDispatch<'a>,
}

impl FusedMatmulRun<'_> {
    /// Computes the values that later nodes read in f32.
    pub(super) fn compute(
        self,
        inputs: &mut MatmulInputs,
    ) -> Result<[Option<Slot>; NODES_MAX], DeviceError> {
        let (model, FusedMatmul { norm, matmuls: nodes, tail, .. }) =
            (self.stage.model, self.fused);
        let mut residual_slot = self.residual;
        let (all, graph, context) = (self.fused.nodes(), &model.graph, model.context());
        let (first, cpu) = (&graph.nodes()[all.start], &model.cpu);
        let in_place = residual_slot.is_some();
        let residual = match tail {
            Some(Tail::AddResidual { residual }) if !in_place => {
                self.stage.columns(&graph.nodes()[all.end - 1], *residual)?
            }
            _ => Cow::Borrowed(&[][..]),
        };
        let mut x = &[][..];
        if !inputs.take(first.inputs[0]) {
            x = self.stage.whole(first, 0)?;
            let k = graph.value(first.inputs[0]).width;
            let norm = norm.map(|norm| norm.bind(&model.weights));
            let formats = nodes.clone().map(|node| context.format(node));
            inputs.current.fill(cpu, formats, &InputSource { x, k, norm });
        }
        let written = self.fused.written();
        let rows = self.stage.rows(first.output);
        let dispatch = Dispatch { rows, gemv_plan: self.gemv_plan, next: self.next_dispatch };
        let product = |node: usize| {
            let (weight, bias) = self.stage.channels(node);
            let x = inputs.current.rows(cpu, weight.packed().dtype(), x);
            Product { x, weight, bias }
        };
        let matmul = |node: usize| {
            let (node, epilogue) = match *tail {
                None => (node, Epilogue::Store),
                Some(Tail::AddResidual { .. }) if in_place => {
                    (nodes.start, Epilogue::AccumulateInto)
                }
                Some(Tail::AddResidual { .. }) => (nodes.start, Epilogue::AddResidual(&residual)),
                Some(Tail::GatedActivation { activation, gate, up }) => {
                    (gate, Epilogue::Gated { gating: activation.into(), up: product(up) })
                }
            };
            let Product { x, weight, bias } = product(node);
            Matmul { x, weight, bias, epilogue }
        };
        let mut outputs = [const { None }; NODES_MAX];
        if let Some(scheme) = self.output_scheme {
            inputs.next.fill_with(cpu, &dispatch, &matmul(written.start), scheme);
            inputs.value = Some(ValueId(written.start));
            return Ok(outputs);
        }
        for node in written.clone() {
            let new = || self.stage.output(&graph.nodes()[node]);
            outputs[node - all.start] = Some(residual_slot.take().unwrap_or_else(new));
        }
        let outs = outputs[written.start - all.start..].iter_mut().flatten();
        matmuls(cpu, &dispatch, written.map(matmul).zip(outs.map(|out| &mut out[..])));
        Ok(outputs)
    }
}

/// Arguments of a fusion of a norm and a sum.
pub(super) struct NormAddRun<'a> {
    pub(super) stage: Stage<'a>,
    /// As [`Fusion::NormAdd::node`](Fusion::NormAdd).
    pub(super) node: usize,
    pub(super) norm: Norm,
    pub(super) input: usize,
    /// The other summand, if it may be overwritten.
    pub(super) residual: Option<Slot>,
}

impl NormAddRun<'_> {
    /// Computes the sum.
    pub(super) fn compute(self) -> Result<Slot, DeviceError> {
        let NormAddRun { stage, node, norm, input, residual } = self;
        let [first, sum] = [0, 1].map(|at| &stage.model.graph.nodes()[node + at]);
        let x = stage.whole(first, 0)?;
        let mut out = match residual {
            Some(residual) => residual,
            None => {
                let mut out = stage.output(sum);
                out.copy_from_slice(stage.whole(sum, input)?);
                out
            }
        };
        add_rms_norm(&stage.model.cpu, x, &norm.bind(&stage.model.weights), &mut out);
        Ok(out)
    }
}
