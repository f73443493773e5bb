//! Feed-forward blocks with a mixture of experts.

use super::super::ModelError;
use super::super::experts::ExpertsConfig;
use super::Builder;
use crate::graph::{ValueId, WeightId};
use crate::op::{Activation, ExpertForm, ExpertMatrix, ExpertsOp, Op, RouteOp};

impl Builder<'_> {
    /// The experts of the current layer, if it has any.
    pub(crate) fn experts(&self) -> Option<&ExpertsConfig> {
        self.config.experts_of(self.layer_number())
    }

    /// What the experts that are chosen for `x` make of it, and the shared expert, if there is one.
    pub(super) fn expert_block(
        &mut self,
        x: ValueId,
        experts: &ExpertsConfig,
    ) -> Result<ValueId, ModelError> {
        let route = self.route(x, experts)?;
        let mixed = self.experts_of_route(x, route, experts)?;
        match experts.shared_width {
            0 => Ok(mixed),
            width => {
                let shared = self.shared_expert(x, width)?;
                Ok(self.push(Op::Add, &[mixed, shared], self.config.width, "ffn_shared_sum"))
            }
        }
    }

    /// The choice of experts for the rows of `x`.
    pub(crate) fn route(
        &mut self,
        x: ValueId,
        experts: &ExpertsConfig,
    ) -> Result<ValueId, ModelError> {
        let logits = self.linear("ffn_gate_inp", x, experts.count)?;
        let op = RouteOp {
            used: experts.used,
            score: experts.score,
            bias: self.opt_vector(&self.name("exp_probs_b.bias"), experts.count)?,
            groups: experts.groups,
            is_normalised: experts.is_normalised,
            scale: experts.scale,
        };
        Ok(self.push(Op::Route(op), &[logits], 2 * experts.used, "ffn_route"))
    }

    /// What the experts of a route make of `x` together.
    pub(crate) fn experts_of_route(
        &mut self,
        x: ValueId,
        route: ValueId,
        experts: &ExpertsConfig,
    ) -> Result<ValueId, ModelError> {
        let [gate, up] = match experts.form {
            ExpertForm::Plain(_) => [None, Some(self.expert_matrix("ffn_up_exps", x, experts)?)],
            _ if self.has("ffn_gate_up_exps.weight") => {
                let both = ExpertsConfig { width: 2 * experts.width, ..experts.clone() };
                let both = self.expert_matrix("ffn_gate_up_exps", x, &both)?;
                let half = |first| ExpertMatrix { first, rows: experts.width, ..both };
                [Some(half(0)), Some(half(experts.width))]
            }
            _ => {
                let gate = self.expert_matrix("ffn_gate_exps", x, experts)?;
                [Some(gate), Some(self.expert_matrix("ffn_up_exps", x, experts)?)]
            }
        };
        let width = self.config.width;
        let op = ExpertsOp {
            count: experts.count,
            used: experts.used,
            gate,
            up: up.unwrap_or_else(|| unreachable!("every form has it")),
            form: experts.form,
            down: self.stacked("ffn_down_exps", [experts.count, width, experts.width])?,
            weighs_input: experts.weighs_input,
        };
        let slots = experts.used * width;
        let made = self.push(Op::Experts(Box::new(op)), &[x, route], slots, "ffn_experts");
        let op = Op::Mix { used: experts.used, is_weighted: !experts.weighs_input };
        Ok(self.push(op, &[made, route], width, "ffn_mix"))
    }

    /// The gated block that all rows have beside their experts. Its output may have a gate of its own for each row.
    pub(crate) fn shared_expert(
        &mut self,
        x: ValueId,
        inner: usize,
    ) -> Result<ValueId, ModelError> {
        let width = self.config.width;
        let gate = self.linear("ffn_gate_shexp", x, inner)?;
        let up = self.linear("ffn_up_shexp", x, inner)?;
        let op = Op::Gated(self.config.activation);
        let made = self.push(op, &[gate, up], inner, "ffn_gated_shexp");
        let made = self.linear("ffn_down_shexp", made, width)?;
        if !self.has("ffn_gate_inp_shexp.weight") {
            return Ok(made);
        }
        let gate = self.linear("ffn_gate_inp_shexp", x, 1)?;
        let each = Op::Columns { first: 0, times: width };
        let gates = self.push(each, &[gate], width, "ffn_gates_shexp");
        let op = Op::Gated(Activation::Sigmoid);
        Ok(self.push(op, &[gates, made], width, "ffn_shexp"))
    }

    fn expert_matrix(
        &mut self,
        role: &str,
        x: ValueId,
        experts: &ExpertsConfig,
    ) -> Result<ExpertMatrix, ModelError> {
        let cols = self.graph.value(x).width;
        self.stacked(role, [experts.count, experts.width, cols])
    }

    /// A matrix of each expert: `[experts, rows, columns]`.
    fn stacked(
        &mut self,
        role: &str,
        [count, rows, cols]: [usize; 3],
    ) -> Result<ExpertMatrix, ModelError> {
        let [weight, bias, scale, unused] = ["weight", "bias", "scale", "input_scale"]
            .map(|part| self.name(&format!("{role}.{part}")));
        self.used.insert(unused);
        let all = count * rows;
        let weight: WeightId = self.matrix(&weight, all, cols)?;
        let bias = match self.tensors.find(&bias) {
            Some(_) => Some(self.matrix(&bias, count, rows)?),
            None => None,
        };
        let scale = self.opt_vector(&scale, count)?;
        Ok(ExpertMatrix { weight, stride: rows, first: 0, rows, bias, scale })
    }
}
