//! Mixtures of experts.

use super::ops::OpRun;
use super::stage::Stage;
use crate::experts::{ExpertMatrices, Experts, Mixture, experts, mix};
use crate::route::route;
use crate::weights::Weights;
use lapwing_model::device::DeviceError;
use lapwing_model::op::{ExpertMatrix, ExpertsOp, RouteOp};

impl OpRun<'_> {
    pub(super) fn route(&self, op: &RouteOp, logits: &[f32], out: &mut [f32]) {
        let Stage { model, .. } = self.stage;
        let bias = op.bias.map(|bias| model.weights.vector(bias));
        route(&model.cpu, op, logits, bias, out);
    }

    pub(super) fn experts(&self, op: &ExpertsOp, out: &mut [f32]) -> Result<(), DeviceError> {
        let Stage { model, .. } = self.stage;
        let [x, route] = [0, 1].map(|index| self.stage.whole(self.node, index));
        let load = experts(&model.cpu, &bind(op, &model.weights), x?, route?, out);
        self.load.set(Some(load));
        Ok(())
    }

    pub(super) fn mix(
        &self,
        used: usize,
        is_weighted: bool,
        out: &mut [f32],
    ) -> Result<(), DeviceError> {
        let Stage { model, .. } = self.stage;
        let [made, route] = [0, 1].map(|index| self.stage.whole(self.node, index));
        let mixture = Mixture { made: made?, route: route?, used, is_weighted };
        mix(&model.cpu, &mixture, model.graph.value(self.node.output).width, out);
        Ok(())
    }
}

fn bind<'a>(op: &ExpertsOp, weights: &'a Weights) -> Experts<'a> {
    let of = |matrix: &ExpertMatrix| {
        let ExpertMatrix { stride, first, rows, .. } = *matrix;
        let [bias, scale] = [matrix.bias, matrix.scale].map(|id| id.map(|id| weights.vector(id)));
        ExpertMatrices { weight: weights.packed(matrix.weight), stride, first, rows, bias, scale }
    };
    Experts {
        count: op.count,
        used: op.used,
        gate: op.gate.as_ref().map(of),
        up: of(&op.up),
        form: op.form,
        down: of(&op.down),
        weighs_input: op.weighs_input,
    }
}
