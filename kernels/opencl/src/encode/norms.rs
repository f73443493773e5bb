//! The commands of layer norms.

use super::{Encoder, Stored};
use crate::model::Model;
use crate::ops::LayerNorm;
use lapwing_model::device::DeviceError;
use lapwing_model::graph::{Node, WeightId};

/// Parameters of a layer norm.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayerNormOf {
    /// Values of a group.
    pub(super) group: usize,
    pub(super) weight: Option<WeightId>,
    pub(super) bias: Option<WeightId>,
    pub(super) eps: f32,
}

impl Encoder<'_> {
    pub(super) fn layer_norm(
        &mut self,
        node: &Node,
        norm: &LayerNormOf,
    ) -> Result<Stored, DeviceError> {
        for part in [norm.weight, norm.bias].into_iter().flatten() {
            self.model.weights.load_vector(part)?;
        }
        let (x, out) = (self.whole(node, 0)?, self.output(node)?);
        let (rows, width) = self.size(node);
        let Model { kernels, weights, .. } = &mut *self.model;
        let [weight, bias] = [norm.weight, norm.bias].map(|id| id.map(|id| weights.vector(id)));
        let added = kernels.layer_norm(&LayerNorm {
            x: x.view(),
            rows,
            groups: width / norm.group,
            len: norm.group,
            weight,
            bias,
            eps: norm.eps,
            out: out.view(),
        });
        self.added(added, out)
    }
}
