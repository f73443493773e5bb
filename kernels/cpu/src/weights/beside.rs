//! Weights of a model whose rows are given by another one of the same open file: it shares the matrices that both have.

use super::Weights;
use super::shared::Kept;
use super::uses::Uses;
use crate::packed::PackedMatrix;
use lapwing_model::graph::{Graph, WeightId};
use std::sync::{Arc, Weak};

/// What weights are loaded for.
pub(super) struct Loading<'a> {
    pub(super) graph: &'a Graph,
    pub(super) uses: Vec<Uses>,
    pub(super) kept: &'a Kept,
    pub(super) beside: &'a Beside,
}

/// The weights of the models that give a model its rows; none for a model that is given none.
pub(super) struct Beside(Vec<Arc<Weights>>);

impl Beside {
    /// Those of the weights in use.
    pub(super) fn of(graph: &Graph, in_use: &[Weak<Weights>]) -> Beside {
        match graph.given_width() {
            0 => Beside(Vec::new()),
            _ => Beside(in_use.iter().filter_map(Weak::upgrade).collect()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For each weight of a graph: the packed matrix that another model has of it.
    pub(super) fn packed(&self, graph: &Graph, uses: &[Uses]) -> Vec<Option<PackedMatrix>> {
        let each = uses.iter().enumerate();
        each.map(|(id, uses)| if uses.matmul { self.find(graph, id) } else { None }).collect()
    }

    fn find(&self, graph: &Graph, id: usize) -> Option<PackedMatrix> {
        let (spec, form) = (&graph.weights()[id], graph.requant(WeightId(id)));
        let part = graph.slices().get(&id);
        self.0.iter().find_map(|other| {
            let is_same = |at: &usize| {
                let bytes = other.forms[*at] == form && other.slices.get(at) == part;
                bytes && other.specs[*at] == *spec && other.weights[*at].packed.is_some()
            };
            other.weights[(0..other.specs.len()).find(is_same)?].packed.clone()
        })
    }
}
