//! The commands of mixtures of experts.

use super::{Encoder, Stored};
use crate::memory::Place;
use crate::model::Model;
use crate::ops::{ExpertRoom, Experts, Mix, Route};
use crate::weights::DeviceWeights;
use lapwing_model::device::DeviceError;
use lapwing_model::graph::Node;
use lapwing_model::op::{ExpertsOp, RouteOp};

impl Encoder<'_> {
    pub(super) fn route(&mut self, node: &Node, op: &RouteOp) -> Result<Stored, DeviceError> {
        op.bias.map_or(Ok(()), |bias| self.model.weights.load_vector(bias))?;
        let (x, out) = (self.whole(node, 0)?, self.output(node)?);
        let rows = self.rows(node.output).len();
        let experts = self.model.graph.value(node.inputs[0]).width;
        let scores = self.room(Route::scores_bytes(op, rows, experts))?;
        let Model { kernels, weights, .. } = &mut *self.model;
        let added = kernels.route(&Route {
            op,
            x: x.view(),
            rows,
            experts,
            bias: op.bias.map(|bias| weights.vector(bias)),
            scores: scores.buffer(),
            out: out.view(),
        });
        self.added(added, out)
    }

    pub(super) fn experts(&mut self, node: &Node, op: &ExpertsOp) -> Result<Stored, DeviceError> {
        let own = self.work.part.experts_of(op.count);
        for matrix in op.matrices() {
            self.model.weights.load_experts(matrix, own.clone())?;
        }
        let (x, route, out) = (self.whole(node, 0)?, self.whole(node, 1)?, self.output(node)?);
        let rows = self.rows(node.output).len();
        let operands = [&x, &route, &out];
        let own = [own.start, own.len()];
        let sizes = |op| Sizes { op, rows, own };
        let bytes = job(&self.model.weights, sizes(op), operands).room_bytes();
        let [gates, ups, weighted, table] = bytes.map(|bytes| self.room(bytes));
        let room = [gates?, ups?, weighted?, table?];
        let Model { kernels, weights, .. } = &mut *self.model;
        let room = ExpertRoom(room.each_ref().map(Place::buffer));
        let added = kernels.experts(&job(weights, sizes(op), operands), room);
        self.added(added, out)
    }

    pub(super) fn mix(
        &mut self,
        node: &Node,
        used: usize,
        is_weighted: bool,
    ) -> Result<Stored, DeviceError> {
        let (made, route) = (self.whole(node, 0)?, self.whole(node, 1)?);
        let ((rows, width), out) = (self.size(node), self.output(node)?);
        let (made, route) = (made.view(), route.view());
        let job = Mix { made, route, rows, width, used, is_weighted, out: out.view() };
        let added = self.model.kernels.mix(&job);
        self.added(added, out)
    }

    /// Memory for values within an op.
    fn room(&self, bytes: usize) -> Result<Place, DeviceError> {
        self.model.memory.take(bytes).map_err(|error| self.failed(&error))
    }
}

/// An op over some rows, for some experts: the first, and their number.
struct Sizes<'a> {
    op: &'a ExpertsOp,
    rows: usize,
    own: [usize; 2],
}

/// The launches of an op on its inputs, a value and a route, and its output.
fn job<'a>(
    weights: &'a DeviceWeights,
    sizes: Sizes<'_>,
    [x, route, out]: [&'a Stored; 3],
) -> Experts<'a> {
    let Sizes { op, rows, own } = sizes;
    Experts {
        x: x.view(),
        rows,
        route: route.view(),
        used: op.used,
        all: op.count,
        own,
        gate: op.gate.as_ref().map(|gate| weights.experts(gate)),
        up: weights.experts(&op.up),
        form: op.form,
        down: weights.experts(&op.down),
        weighs_input: op.weighs_input,
        out: out.view(),
    }
}
