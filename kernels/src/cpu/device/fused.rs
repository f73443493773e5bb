//! Nodes that are computed together: an RMS norm and the products of its result, products of one
//! value, and what is done with products before they are written.

use std::borrow::Cow;
use std::ops::Range;

use super::scratch::FormsOf;
use super::stage::Stage;
use crate::cpu::norm::RmsWeight;
use crate::cpu::products::{FormSource, PRODUCTS_MAX, Product, Then, products};
use crate::cpu::quantize::ActKind;
use crate::cpu::{Packed, Weights};
use crate::device::{DeviceError, Slot};
use crate::graph::{Graph, Node, ValueId, WeightId};
use crate::kv::TURNED_MAX;
use crate::op::{Activation, Op};
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
    fn ends(&self, value: ValueId, nodes: Range<usize>) -> bool {
        self.last_uses[nodes].iter().flatten().any(|dead| *dead == value)
    }

    /// The norm that a node is, if over whole rows.
    fn norm(&self, node: &Node) -> Option<Norm> {
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

    fn format(&self, node: usize) -> DType {
        self.product(node).0.dtype()
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
}

impl Fused {
    /// What begins with a node, if anything does.
    pub(super) fn at(known: &Known<'_>, start: usize) -> Option<Fused> {
        Group::at(known, start).map(Fused::Products).or_else(|| {
            let [rope, attention] = known.graph.nodes().get(start..start + 2)? else {
                return None;
            };
            let (Op::Rope { heads, .. }, Op::Attention(_)) = (&rope.op, &attention.op) else {
                return None;
            };
            let alone = attention
                .inputs
                .iter()
                .enumerate()
                .all(|(at, input)| (*input == rope.output) == (at == 1));
            let fits = known.graph.value(rope.output).width <= TURNED_MAX * heads;
            (alone && fits && known.ends(rope.output, start..start + 2))
                .then_some(Fused::Keys(start))
        })
    }

    /// Its nodes.
    pub(super) fn nodes(&self) -> Range<usize> {
        match self {
            Fused::Products(group) => group.nodes(),
            Fused::Keys(rope) => *rope..*rope + 2,
        }
    }

    /// Whether a part of a stage that ends before node `end` can compute it together: it has all
    /// of its nodes, no value is asked for that is not written, and what needs whole rows has them.
    pub(super) fn fits(&self, end: usize, part: &Part, writes: &[ValueId]) -> bool {
        match self {
            Fused::Products(group) => group.fits(end, part, writes),
            Fused::Keys(rope) => {
                rope + 2 <= end && part.features.is_whole() && !writes.contains(&ValueId(*rope))
            }
        }
    }
}

/// Nodes that follow each other: a norm (or none), products of its result (or of one value), and
/// a residual added to the only product or the gate of the only two (or neither); also a product
/// alone. Nothing else reads what lies between them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    norm: Option<Norm>,
    products: Range<usize>,
    tail: Option<Tail>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Norm {
    weight: WeightId,
    eps: f32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Tail {
    /// The residual is the last node's input of that number.
    Add { residual: usize },
    /// Nodes of the products.
    Gate { activation: Activation, gate: usize, up: usize },
}

impl Group {
    /// The group that begins with a node, if any does.
    fn at(known: &Known<'_>, start: usize) -> Option<Group> {
        let nodes = known.graph.nodes();
        let norm = known.norm(&nodes[start]);
        let (first, input) = match norm {
            Some(_) => (start + 1, nodes[start].output),
            None => (start, *nodes[start].inputs.first()?),
        };
        let is_product =
            |node: &&Node| matches!(node.op, Op::MatMul { .. }) && node.inputs[0] == input;
        let count = nodes[first..].iter().take(PRODUCTS_MAX).take_while(is_product).count();
        if count == 0 {
            return None;
        }
        let mut group = Group { norm, products: first..first + count, tail: None };
        group.tail = group.tail_of(known);
        let needs_norm = norm.is_some() && !known.ends(input, group.nodes());
        (!needs_norm).then_some(group)
    }

    /// The only result, if the only product of `next` alone reads it, and the format of that
    /// product's weights.
    pub(super) fn feeds(&self, known: &Known<'_>, next: &Group) -> Option<(ValueId, DType)> {
        let value = ValueId(self.written().start);
        let readers = &known.graph.nodes()[next.nodes()];
        let reads = readers.iter().flat_map(|node| &node.inputs).filter(|id| **id == value).count();
        let product = next.products.start;
        let alone = self.written().len() == 1
            && next.norm.is_none()
            && next.products.len() == 1
            && known.graph.nodes()[product].inputs[0] == value
            && reads == 1
            && known.ends(value, next.nodes());
        alone.then(|| (value, known.format(product)))
    }

    /// As [`Fused::fits`].
    pub(super) fn fits(&self, end: usize, part: &Part, writes: &[ValueId]) -> bool {
        let (nodes, written) = (self.nodes(), self.written());
        nodes.end <= end
            && (self.norm.is_none() || part.features.is_whole())
            && writes.iter().all(|id| !nodes.contains(&id.0) || written.contains(&id.0))
    }

    /// The residual that it may add its only product to where it lies: nothing else reads it.
    pub(super) fn adds_to(&self, known: &Known<'_>, writes: &[ValueId]) -> Option<ValueId> {
        let Some(Tail::Add { residual }) = self.tail else { return None };
        let (nodes, all) = (known.graph.nodes(), self.nodes());
        let id = nodes[all.end - 1].inputs[residual];
        let is_input = nodes[all.start].inputs[0] == id;
        (!is_input && !writes.contains(&id) && known.ends(id, all.end - 1..all.end)).then_some(id)
    }

    /// Its nodes.
    pub(super) fn nodes(&self) -> Range<usize> {
        let start = self.products.start - usize::from(self.norm.is_some());
        start..self.products.end + usize::from(self.tail.is_some())
    }

    /// Those of its nodes whose values are written.
    fn written(&self) -> Range<usize> {
        match self.tail {
            Some(_) => self.products.end..self.products.end + 1,
            None => self.products.clone(),
        }
    }

    fn tail_of(&self, known: &Known<'_>) -> Option<Tail> {
        let Range { start, end: at } = self.products;
        let node = known.graph.nodes().get(at)?;
        // Values are numbered as the nodes that write them.
        let ends = |product| known.ends(ValueId(product), start..at + 1);
        match node.op {
            Op::Add if self.products.len() == 1 && ends(start) => {
                let residual = node.inputs.iter().position(|input| input.0 != start)?;
                // The group's own norm is not written.
                let is_norm = self.norm.is_some() && node.inputs[residual].0 + 1 == start;
                (!is_norm).then_some(Tail::Add { residual })
            }
            Op::Gated(activation) if self.products.len() == 2 => {
                let (gate, up) = (node.inputs[0].0, node.inputs[1].0);
                let both = [(start, start + 1), (start + 1, start)].contains(&(gate, up));
                let kind = |product| ActKind::of_format(known.format(product));
                let is_one = both && ends(gate) && ends(up) && kind(gate) == kind(up);
                is_one.then_some(Tail::Gate { activation, gate, up })
            }
            _ => None,
        }
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
}

impl FusedRun<'_> {
    /// What its nodes write, as far as later ones read it as it is.
    pub(super) fn compute(
        self,
        forms: &mut FormsOf,
    ) -> Result<[Option<Slot>; NODES_MAX], DeviceError> {
        let (device, Group { norm, products: nodes, tail }) = (self.stage.device, self.group);
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
            let norm = norm.map(|Norm { weight, eps }| {
                let weight = device.weights.vector(weight);
                RmsWeight { weight, eps }
            });
            let formats = nodes.clone().map(|product| known.format(product));
            forms.now.fill(cpu, formats, &FormSource { x, k, norm });
        }
        let (rows, written) = (self.stage.rows(first.output), self.group.written());
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
            forms.next.fill_with(cpu, rows, &product(written.start), kind);
            forms.value = Some(ValueId(written.start));
            return Ok(outputs);
        }
        for node in written.clone() {
            let new = || self.stage.output(&graph.nodes()[node]);
            outputs[node - all.start] = Some(residual_slot.take().unwrap_or_else(new));
        }
        let outs = outputs[written.start - all.start..].iter_mut().flatten();
        products(cpu, rows, written.map(product).zip(outs.map(|out| &mut out[..])));
        Ok(outputs)
    }
}
