//! The model, as fusion sees it.

use std::ops::Range;

use crate::loops::rms_norm::RmsNormWeight;
use crate::packed::PackedMatrix;
use crate::weights::Weights;
use lapwing_model::formats::DType;
use lapwing_model::graph::{Graph, Node, ValueId, WeightId};
use lapwing_model::op::Op;

/// The model, as fusion sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct FusionContext<'a> {
    pub(super) graph: &'a Graph,
    pub(super) weights: &'a Weights,
    /// As [`Graph::last_uses`].
    pub(super) last_uses: &'a [Vec<ValueId>],
}

impl<'a> FusionContext<'a> {
    /// Whether these nodes are the last to read a value, so that it need not be written.
    pub(super) fn is_dead_after(&self, value: ValueId, nodes: Range<usize>) -> bool {
        self.last_uses[nodes].iter().flatten().any(|dead| *dead == value)
    }

    /// The norm of a node, if it normalises whole rows and has gains.
    pub(super) fn norm(&self, node: &Node) -> Option<Norm> {
        let Op::RmsNorm { weight: Some(weight), group, eps } = node.op else { return None };
        let is_row = group == self.graph.value(node.output).width;
        is_row.then_some(Norm { weight, eps })
    }

    /// Matrix and bias of a matmul.
    pub(super) fn matmul(&self, node: usize) -> (&'a PackedMatrix, Option<&'a [f32]>) {
        let Op::MatMul { weight, bias } = self.graph.nodes()[node].op else {
            unreachable!("node {node} is a matmul");
        };
        (self.weights.packed(weight), bias.map(|bias| self.weights.vector(bias)))
    }

    pub(super) fn format(&self, node: usize) -> DType {
        self.matmul(node).0.dtype()
    }
}

/// A norm of whole rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Norm {
    weight: WeightId,
    eps: f32,
}

impl Norm {
    pub(super) fn bind(self, weights: &Weights) -> RmsNormWeight<'_> {
        RmsNormWeight { weight: weights.vector(self.weight), eps: self.eps }
    }
}
