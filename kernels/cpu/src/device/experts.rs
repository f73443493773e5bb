//! Mixtures of experts.

use super::ops::OpRun;
use super::scratch::ExpertLoads;
use super::stage::Stage;
use crate::experts::{ExpertMatrices, Experts, ExpertsJob, Mixture, mix, run_experts};
use crate::route::route;
use crate::weights::Weights;
use lapwing_model::device::DeviceError;
use lapwing_model::op::{ExpertMatrix, ExpertsOp, Op};

impl OpRun<'_> {
    /// Routes, experts and what these make together.
    pub(super) fn mixture(&self, out: &mut [f32]) -> Result<(), DeviceError> {
        let Stage { model, part, .. } = self.stage;
        let whole = |index| self.stage.whole(self.node, index);
        match &self.node.op {
            Op::Route(op) => {
                let bias = op.bias.map(|bias| model.weights.vector(bias));
                route(&model.cpu, op, whole(0)?, bias, out);
            }
            Op::Experts(op) => {
                let rows = self.stage.rows(self.node.output);
                let (after, cpu) = (&self.after, &model.cpu);
                let first_read = |thread| after.first_read(cpu, rows, thread);
                let (own, first_read) = (part.experts_of(op.count), &first_read);
                let job = ExpertsJob { x: whole(0)?, route: whole(1)?, own, first_read };
                let mut loads = self.loads.borrow_mut();
                let ExpertLoads { load, each } = &mut *loads;
                *load = Some(run_experts(cpu, &bind(op, &model.weights), job, out, Some(each)));
            }
            &Op::Mix { used, is_weighted } => {
                let mixture = Mixture { made: whole(0)?, route: whole(1)?, used, is_weighted };
                let width = model.graph.value(self.node.output).width;
                mix(&model.cpu, &mixture, width, out);
            }
            other => return Err(self.stage.unsupported(self.node, other.name())),
        }
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
