//! The commands of ops that sum over rows, or add values with factors of each row.

use super::{Encoder, Stored};
use crate::ops::{AddWeighted, Excess, View, WithLength};
use lapwing_model::device::DeviceError;
use lapwing_model::graph::Node;

impl Encoder<'_> {
    pub(super) fn excess(&mut self, node: &Node, deviations: f32) -> Result<Stored, DeviceError> {
        let (x, out) = (self.whole(node, 0)?, self.output(node)?);
        let (rows, width) = self.size(node);
        let job = Excess { x: x.view(), rows, width, deviations, out: out.view() };
        let added = self.model.kernels.excess(&job);
        self.added(added, out)
    }

    pub(super) fn with_length(&mut self, node: &Node) -> Result<Stored, DeviceError> {
        let (x, y, out) = (self.whole(node, 0)?, self.whole(node, 1)?, self.output(node)?);
        let (rows, width) = self.size(node);
        let job = WithLength { x: x.view(), y: y.view(), rows, width, out: out.view() };
        let added = self.model.kernels.with_length(&job);
        self.added(added, out)
    }

    /// A launch for each value that is added.
    pub(super) fn weighted_sum(
        &mut self,
        node: &Node,
        first: usize,
    ) -> Result<Stored, DeviceError> {
        let (mut sum, factors, out) =
            (self.whole(node, 0)?, self.whole(node, 1)?, self.output(node)?);
        let (rows, width) = self.size(node);
        for (at, input) in (2..node.inputs.len()).enumerate() {
            let summand = self.whole(node, input)?;
            let all = factors.view();
            let factors = View { at: all.at + first + at, ..all };
            let (a, b) = (sum.view(), summand.view());
            let job = AddWeighted { a, b, factors, rows, width, out: out.view() };
            let added = self.model.kernels.add_weighted(&job);
            self.added(added, out.clone())?;
            sum = out.clone();
        }
        Ok(out)
    }
}
