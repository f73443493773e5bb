//! Products that are computed together, with what comes before and after them.

use std::ops::Range;

use super::fused::{Known, Norm};
use crate::cpu::Cpu;
use crate::cpu::products::{PRODUCTS_MAX, RowTasks, Upcoming};
use crate::cpu::quantize::ActKind;
use crate::graph::{Node, ValueId};
use crate::op::{Activation, Op};
use crate::part::Part;
use crate::quant::DType;

/// Nodes that follow each other: a norm (or none), products of its result (or of one value), and
/// a residual added to the only product or the gate of the only two (or neither); also a product
/// alone. Nothing else reads what lies between them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) norm: Option<Norm>,
    pub(super) products: Range<usize>,
    pub(super) tail: Option<Tail>,
    /// The only result, if the only product of the next group alone reads it, and the format of
    /// that product's weights.
    pub(super) feeds: Option<(ValueId, DType)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tail {
    /// The residual is the last node's input of that number.
    Add { residual: usize },
    /// Nodes of the products.
    Gate { activation: Activation, gate: usize, up: usize },
}

impl Group {
    /// The group that begins with a node, if any does.
    pub(super) fn at(known: &Known<'_>, start: usize) -> Option<Group> {
        let mut group = Group::of(known, start)?;
        group.feeds =
            Group::of(known, group.nodes().end).and_then(|next| group.read_by(known, &next));
        Some(group)
    }

    /// As [`Group::at`], not knowing the next.
    fn of(known: &Known<'_>, start: usize) -> Option<Group> {
        let nodes = known.graph.nodes();
        let norm = known.norm(nodes.get(start)?);
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
        let mut group = Group { norm, products: first..first + count, tail: None, feeds: None };
        group.tail = group.tail_of(known);
        let needs_norm = norm.is_some() && !known.ends(input, group.nodes());
        (!needs_norm).then_some(group)
    }

    /// As [`Group::feeds`], if `next` is the next.
    fn read_by(&self, known: &Known<'_>, next: &Group) -> Option<(ValueId, DType)> {
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

    /// The last node's input that the only product is added to.
    pub(super) fn residual(&self) -> Option<usize> {
        match self.tail? {
            Tail::Add { residual } => Some(residual),
            Tail::Gate { .. } => None,
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
    pub(super) fn upcoming<'a>(&self, known: &Known<'a>) -> Upcoming<'a> {
        let is_gate = matches!(self.tail, Some(Tail::Gate { .. }));
        let products = match self.tail {
            Some(Tail::Gate { gate, .. }) => gate..gate + 1,
            _ => self.products.clone(),
        };
        let mut weights = [const { None }; PRODUCTS_MAX];
        for (to, product) in weights.iter_mut().zip(products) {
            *to = Some(known.product(product).0.all());
        }
        Upcoming { weights, is_gate, ..Upcoming::default() }
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

/// Tasks of a group of products for one row.
#[derive(Debug)]
pub(super) struct OneRow {
    plain: RowTasks,
    /// Where the result is made in the form of [`Group::feeds`] instead.
    in_form: Option<RowTasks>,
}

impl OneRow {
    pub(super) fn of(cpu: &Cpu, group: &Group, known: &Known<'_>) -> OneRow {
        let products = group.upcoming(known);
        let form = group.feeds.and_then(|(_, format)| ActKind::of(cpu.activations(), format));
        let in_form = form.map(|kind| Upcoming { form: Some(kind), ..products.clone() });
        OneRow {
            plain: products.row_tasks(cpu),
            in_form: in_form.map(|products| products.row_tasks(cpu)),
        }
    }

    pub(super) fn in_form(&self, form: Option<ActKind>) -> Option<&RowTasks> {
        match form {
            Some(_) => self.in_form.as_ref(),
            None => Some(&self.plain),
        }
    }
}
