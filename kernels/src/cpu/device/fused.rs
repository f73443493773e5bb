//! Nodes that are computed together: what begins with a node, whether a part of a stage can compute
//! it so, and the computing. [`super::group`] has those around products.

use std::borrow::Cow;
use std::ops::Range;

use super::group::{Group, Tail};
use super::scratch::FormsOf;
use super::stage::Stage;
use crate::cpu::norm::{RmsWeight, add_rms_norm};
use crate::cpu::products::{
    Dispatch, FormSource, PRODUCTS_MAX, Product, RowTasks, Then, Upcoming, products,
};
use crate::cpu::quantize::ActKind;
use crate::cpu::{Packed, Weights};
use crate::device::{DeviceError, Slot};
use crate::graph::{Graph, Node, ValueId, WeightId};
use crate::kv::ROTARY_DIM_MAX;
use crate::op::Op;
use crate::part::Part;
use crate::quant::DType;

/// Most nodes of a group: a norm, products, and what is done with them.
const NODES_MAX: usize = PRODUCTS_MAX + 2;

/// What a device knows of its model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) graph: &'a Graph,
    pub(super) weights: &'a Weights,
    /// As [`Graph::last_uses`].
    pub(super) last_uses: &'a [Vec<ValueId>],
}

impl<'a> Known<'a> {
    /// Whether nothing reads a value after these nodes, so that it need not be written.
    pub(super) fn ends(&self, value: ValueId, nodes: Range<usize>) -> bool {
        self.last_uses[nodes].iter().flatten().any(|dead| *dead == value)
    }

    /// The norm that a node is, if over whole rows.
    pub(super) fn norm(&self, node: &Node) -> Option<Norm> {
        let Op::RmsNorm { weight, eps } = node.op else { return None };
        let is_row = self.graph.weights()[weight.0].cols == self.graph.value(node.output).width;
        is_row.then_some(Norm { weight, eps })
    }

    /// The matrix and the bias of a product.
    pub(super) fn product(&self, node: usize) -> (&'a Packed, Option<&'a [f32]>) {
        let Op::MatMul { weight, bias } = self.graph.nodes()[node].op else {
            unreachable!("node {node} is a product");
        };
        (self.weights.packed(weight), bias.map(|bias| self.weights.vector(bias)))
    }

    pub(super) fn format(&self, node: usize) -> DType {
        self.product(node).0.dtype()
    }
}

/// A norm over whole rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Norm {
    weight: WeightId,
    eps: f32,
}

impl Norm {
    fn bind(self, weights: &Weights) -> RmsWeight<'_> {
        RmsWeight { weight: weights.vector(self.weight), eps: self.eps }
    }
}

/// Nodes that are computed together.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fused {
    /// Products, with what comes before and after them.
    Products(Group),
    /// The rotation of keys, a node of this number, and the attention that follows and alone reads
    /// them: they are rotated as they are written to their pages.
    Keys(usize),
    /// A norm, a node of this number, and the sum that follows and alone reads it. The sum's other
    /// input is its input of the number `residual`.
    NormAdd { node: usize, norm: Norm, residual: usize },
}

impl Fused {
    /// What begins with a node, if anything does.
    pub(super) fn at(known: &Known<'_>, start: usize) -> Option<Fused> {
        Group::at(known, start).map(Fused::Products).or_else(|| Fused::pair(known, start))
    }

    /// Two nodes, of which the second alone reads what the first writes.
    fn pair(known: &Known<'_>, start: usize) -> Option<Fused> {
        let [first, second] = known.graph.nodes().get(start..start + 2)? else {
            return None;
        };
        let mut reads = second.inputs.iter().enumerate().filter(|(_, id)| **id == first.output);
        let (Some((read, _)), None) = (reads.next(), reads.next()) else { return None };
        if !known.ends(first.output, start..start + 2) {
            return None;
        }
        match (&first.op, &second.op) {
            (Op::Rope { heads, .. }, Op::Attention(_)) => {
                let fits = known.graph.value(first.output).width <= ROTARY_DIM_MAX * heads;
                (read == 1 && fits).then_some(Fused::Keys(start))
            }
            (Op::RmsNorm { .. }, Op::Add) => {
                let norm = known.norm(first)?;
                Some(Fused::NormAdd { node: start, norm, residual: 1 - read })
            }
            _ => None,
        }
    }

    /// Its nodes.
    pub(super) fn nodes(&self) -> Range<usize> {
        match self {
            Fused::Products(group) => group.nodes(),
            Fused::Keys(node) | Fused::NormAdd { node, .. } => *node..*node + 2,
        }
    }

    /// Whether a part of a stage that ends before node `end` can compute it together: it has all
    /// of its nodes, no value is asked for that is not written, and what needs whole rows has them.
    pub(super) fn fits(&self, end: usize, part: &Part, writes: &[ValueId]) -> bool {
        match self {
            Fused::Products(group) => group.fits(end, part, writes),
            Fused::Keys(node) | Fused::NormAdd { node, .. } => {
                node + 2 <= end && part.features.is_whole() && !writes.contains(&ValueId(*node))
            }
        }
    }

    /// The value that its last node may add to where it lies: nothing else reads it.
    pub(super) fn adds_to(&self, known: &Known<'_>, writes: &[ValueId]) -> Option<ValueId> {
        let residual = match self {
            Fused::Products(group) => group.residual()?,
            Fused::Keys(_) => return None,
            Fused::NormAdd { residual, .. } => *residual,
        };
        let (nodes, all) = (known.graph.nodes(), self.nodes());
        let id = nodes[all.end - 1].inputs[residual];
        let is_input = nodes[all.start].inputs[0] == id;
        (!is_input && !writes.contains(&id) && known.ends(id, all.end - 1..all.end)).then_some(id)
    }
}

/// A group and what it computes from.
pub(super) struct FusedRun<'a> {
    pub(super) stage: Stage<'a>,
    pub(super) group: &'a Group,
    /// What is made of the only result instead of it.
    pub(super) form: Option<ActKind>,
    /// The residual that the only product is added to, if that may be changed.
    pub(super) residual: Option<Slot>,
    /// How it is cut for one row.
    pub(super) one_row: Option<&'a RowTasks>,
    /// What will most likely be read after its weights.
    pub(super) upcoming: Upcoming<'a>,
}

impl FusedRun<'_> {
    /// What its nodes write, as far as later ones read it as it is.
    pub(super) fn compute(
        self,
        forms: &mut FormsOf,
    ) -> Result<[Option<Slot>; NODES_MAX], DeviceError> {
        let (device, Group { norm, products: nodes, tail, .. }) = (self.stage.device, self.group);
        let mut residual_slot = self.residual;
        let (all, graph, known) = (self.group.nodes(), &device.graph, device.known());
        let (first, cpu) = (&graph.nodes()[all.start], &device.cpu);
        let in_place = residual_slot.is_some();
        let residual = match tail {
            Some(Tail::Add { residual }) if !in_place => {
                self.stage.columns(&graph.nodes()[all.end - 1], *residual)?
            }
            _ => Cow::Borrowed(&[][..]),
        };
        let mut x = &[][..];
        if !forms.take(first.inputs[0]) {
            x = self.stage.whole(first, 0)?;
            let k = graph.value(first.inputs[0]).width;
            let norm = norm.map(|norm| norm.bind(&device.weights));
            let formats = nodes.clone().map(|product| known.format(product));
            forms.now.fill(cpu, formats, &FormSource { x, k, norm });
        }
        let written = self.group.written();
        let rows = self.stage.rows(first.output);
        let dispatch = Dispatch { rows, one_row: self.one_row, next: self.upcoming };
        let product = |node: usize| {
            let (product, then) = match *tail {
                None => (node, Then::Write),
                Some(Tail::Add { .. }) if in_place => (nodes.start, Then::AddTo),
                Some(Tail::Add { .. }) => (nodes.start, Then::Add(&residual)),
                Some(Tail::Gate { activation, gate, up }) => {
                    let (up, bias) = self.stage.features(up);
                    (gate, Then::Gate { activation, up, bias })
                }
            };
            let (weight, bias) = self.stage.features(product);
            let x = forms.now.rows(cpu, weight.packed().dtype(), x);
            Product { x, weight, bias, then }
        };
        let mut outputs = [const { None }; NODES_MAX];
        if let Some(kind) = self.form {
            forms.next.fill_with(cpu, &dispatch, &product(written.start), kind);
            forms.value = Some(ValueId(written.start));
            return Ok(outputs);
        }
        for node in written.clone() {
            let new = || self.stage.output(&graph.nodes()[node]);
            outputs[node - all.start] = Some(residual_slot.take().unwrap_or_else(new));
        }
        let outs = outputs[written.start - all.start..].iter_mut().flatten();
        products(cpu, &dispatch, written.map(product).zip(outs.map(|out| &mut out[..])));
        Ok(outputs)
    }
}

/// A norm, the sum that follows it, and what they are computed from.
pub(super) struct NormAddRun<'a> {
    pub(super) stage: Stage<'a>,
    /// As in [`Fused::NormAdd`].
    pub(super) node: usize,
    pub(super) norm: Norm,
    pub(super) input: usize,
    /// The other summand, if it may be changed.
    pub(super) residual: Option<Slot>,
}

impl NormAddRun<'_> {
    /// The sum.
    pub(super) fn compute(self) -> Result<Slot, DeviceError> {
        let NormAddRun { stage, node, norm, input, residual } = self;
        let [first, sum] = [0, 1].map(|at| &stage.device.graph.nodes()[node + at]);
        let x = stage.whole(first, 0)?;
        let mut out = match residual {
            Some(residual) => residual,
            None => {
                let mut out = stage.output(sum);
                out.copy_from_slice(stage.whole(sum, input)?);
                out
            }
        };
        add_rms_norm(&stage.device.cpu, x, &norm.bind(&stage.device.weights), &mut out);
        Ok(out)
    }
}
