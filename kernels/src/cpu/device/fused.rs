//! Nodes that are computed together: an RMS norm and the products of its result, products of one
//! value, and what is done with products before they are written.

use std::borrow::Cow;
use std::ops::Range;

use super::CpuDevice;
use super::stage::Stage;
use crate::cpu::norm::RmsWeight;
use crate::cpu::products::{FormSource, Forms, PRODUCTS_MAX, Product, Then, products};
use crate::cpu::quantize::ActKind;
use crate::cpu::{Features, Packed};
use crate::device::{DeviceError, Slot};
use crate::graph::{Node, ValueId, WeightId};
use crate::op::{Activation, Op};
use crate::part::Part;

/// Most nodes of a group: a norm, products, and what is done with them.
const NODES_MAX: usize = PRODUCTS_MAX + 2;

/// What a group may reach.
#[derive(Debug)]
pub(super) struct Bounds<'a> {
    /// Nodes that are still to be computed.
    pub(super) nodes: Range<usize>,
    pub(super) part: &'a Part,
    /// Values that are asked for.
    pub(super) writes: &'a [ValueId],
}

impl Bounds<'_> {
    /// Whether nothing reads a value after these nodes, so that it need not be written.
    fn ends(&self, device: &CpuDevice, value: ValueId, nodes: Range<usize>) -> bool {
        let mut dead = device.last_uses[nodes].iter().flatten();
        !self.writes.contains(&value) && dead.any(|dead| *dead == value)
    }
}

/// Nodes that follow each other: a norm (or none), products of its result (or of one value), and
/// a residual added to the only product or the gate of the only two (or neither). Nothing else
/// reads what lies between them.
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
    /// The group that begins with the first node of `bounds`; `None` where that is to be computed
    /// alone.
    pub(super) fn find(device: &CpuDevice, bounds: &Bounds<'_>) -> Option<Group> {
        let nodes = device.graph.nodes();
        let Range { start, end } = bounds.nodes;
        let norm = norm_of(device, &nodes[start]).filter(|_| bounds.part.features.is_whole());
        let (first, input) = match norm {
            Some(_) => (start + 1, nodes[start].output),
            None => (start, *nodes[start].inputs.first()?),
        };
        let is_product =
            |node: &&Node| matches!(node.op, Op::MatMul { .. }) && node.inputs[0] == input;
        let count = nodes[first..end].iter().take(PRODUCTS_MAX).take_while(is_product).count();
        if count == 0 {
            return None;
        }
        let mut group = Group { norm, products: first..first + count, tail: None };
        group.tail = group.tail_of(device, bounds);
        let needs_norm = norm.is_some() && !bounds.ends(device, input, group.nodes());
        (group.nodes().len() > 1 && !needs_norm).then_some(group)
    }

    /// Its nodes.
    pub(super) fn nodes(&self) -> Range<usize> {
        let start = self.products.start - usize::from(self.norm.is_some());
        start..self.products.end + usize::from(self.tail.is_some())
    }

    fn tail_of(&self, device: &CpuDevice, bounds: &Bounds<'_>) -> Option<Tail> {
        let Range { start, end: at } = self.products;
        let node = device.graph.nodes()[..bounds.nodes.end].get(at)?;
        // Values are numbered as the nodes that write them.
        let ends = |product| bounds.ends(device, ValueId(product), start..at + 1);
        match node.op {
            Op::Add if self.products.len() == 1 && ends(start) => {
                let residual = node.inputs.iter().position(|input| input.0 != start)?;
                Some(Tail::Add { residual })
            }
            Op::Gated(activation) if self.products.len() == 2 => {
                let (gate, up) = (node.inputs[0].0, node.inputs[1].0);
                let both = [(start, start + 1), (start + 1, start)].contains(&(gate, up));
                let kind = |product| ActKind::of(packed(device, product).dtype());
                let is_one = both && ends(gate) && ends(up) && kind(gate) == kind(up);
                is_one.then_some(Tail::Gate { activation, gate, up })
            }
            _ => None,
        }
    }
}

/// The norm that a node is, if over whole rows.
fn norm_of(device: &CpuDevice, node: &Node) -> Option<Norm> {
    let Op::RmsNorm { weight, eps } = node.op else { return None };
    let is_row = device.graph.weights()[weight.0].cols == device.graph.value(node.output).width;
    is_row.then_some(Norm { weight, eps })
}

/// The matrix and the bias of a product.
fn weights_of(device: &CpuDevice, product: usize) -> (&Packed, Option<&[f32]>) {
    let Op::MatMul { weight, bias } = device.graph.nodes()[product].op else {
        unreachable!("node {product} is a product");
    };
    (device.weights.packed(weight), bias.map(|bias| device.weights.vector(bias)))
}

fn packed(device: &CpuDevice, product: usize) -> &Packed {
    weights_of(device, product).0
}

/// A group and what it computes from.
pub(super) struct FusedRun<'a> {
    pub(super) stage: Stage<'a>,
    pub(super) group: Group,
}

impl FusedRun<'_> {
    /// What its nodes write, as far as later ones read it.
    pub(super) fn compute(
        &self,
        forms: &mut Forms,
    ) -> Result<[Option<Slot>; NODES_MAX], DeviceError> {
        let (device, Group { norm, products: nodes, tail }) = (self.stage.device, &self.group);
        let (all, graph) = (self.group.nodes(), &device.graph);
        let first = &graph.nodes()[all.start];
        let x = self.stage.whole(first, 0)?;
        let k = graph.value(first.inputs[0]).width;
        let residual = match tail {
            Some(Tail::Add { residual }) => {
                self.stage.columns(&graph.nodes()[all.end - 1], *residual)?
            }
            _ => Cow::Borrowed(&[][..]),
        };
        let norm = norm
            .map(|Norm { weight, eps }| RmsWeight { weight: device.weights.vector(weight), eps });
        let formats = nodes.clone().map(|product| packed(device, product).dtype());
        forms.fill(&device.cpu, formats, &FormSource { x, k, norm });
        let mut outputs = [const { None }; NODES_MAX];
        let written = match tail {
            Some(_) => all.end - 1..all.end,
            None => nodes.clone(),
        };
        for node in written.clone() {
            outputs[node - all.start] = Some(self.stage.output(&graph.nodes()[node]));
        }
        let outs = outputs[written.start - all.start..].iter_mut().flatten();
        let list = written.zip(outs).map(|(node, out)| {
            let (product, then) = match *tail {
                None => (node, Then::Write),
                Some(Tail::Add { .. }) => (nodes.start, Then::Add(&residual)),
                Some(Tail::Gate { activation, gate, up }) => {
                    let (up, bias) = self.features(up);
                    (gate, Then::Gate { activation, up, bias })
                }
            };
            let (weight, bias) = self.features(product);
            let x = forms.rows(weight.packed().dtype(), x);
            Product { x, weight, bias, then, out }
        });
        products(&device.cpu, self.stage.rows(first.output), list);
        Ok(outputs)
    }

    /// The part's features of a product's matrix and bias.
    fn features(&self, product: usize) -> (Features<'_>, Option<&[f32]>) {
        let (weight, bias) = weights_of(self.stage.device, product);
        let features = self.stage.part.features.of_width(weight.rows());
        (weight.features(features.clone()), bias.map(|bias| &bias[features]))
    }
}
