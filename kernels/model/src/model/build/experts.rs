//! Feed-forward blocks with a mixture of experts.

use super::super::ModelError;
use super::super::experts::{AdjugateExperts, ExpertsConfig, SharedExpert};
use super::Builder;
use super::limits::GateRoles;
use super::weights::Joined;
use crate::graph::{Node, ValueId};
use crate::op::{Activation, ExpertForm, ExpertMatrix, ExpertsOp, Op, RouteOp};

impl<'a> Builder<'a> {
    /// The experts of the current layer, if it has any.
    pub(crate) fn experts(&self) -> Option<&'a ExpertsConfig> {
        self.config.experts.as_ref().filter(|_| self.has("ffn_gate_inp.weight"))
    }

    /// Checks that some layer has the experts that the file speaks of.
    pub(super) fn check_experts(&self) -> Result<(), ModelError> {
        let has_some = |node: &Node| matches!(node.op, Op::Experts(_));
        match &self.config.experts {
            Some(experts) if !self.graph.nodes().iter().any(has_some) => {
                Err(ModelError::BadValue {
                    key: format!("{}.expert_count", self.config.arch.name()),
                    found: experts.count.to_string(),
                    expected: "no layer has the matrix of a router (ffn_gate_inp.weight)"
                        .to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    /// The experts of the current layer.
    ///
    /// # Errors
    /// It has none.
    pub(crate) fn some_experts(&self) -> Result<&'a ExpertsConfig, ModelError> {
        self.experts().ok_or_else(|| self.missing(&self.name("ffn_gate_inp.weight")))
    }

    /// What the experts that are chosen for `x` make of it, and the shared expert, if there is one.
    pub(crate) fn expert_block(
        &mut self,
        x: ValueId,
        experts: &ExpertsConfig,
    ) -> Result<ValueId, ModelError> {
        let logits = self.linear("ffn_gate_inp", x, experts.count)?;
        let route = self.route(logits, experts)?;
        let mixed = self.narrowed_experts([x, route], experts)?;
        let has_shared = match experts.shared {
            SharedExpert::None => false,
            SharedExpert::Optional | SharedExpert::OptionalAveraged => {
                self.has("ffn_up_shexp.weight")
            }
            SharedExpert::Always => true,
        };
        if !has_shared {
            return Ok(mixed);
        }
        let (shared, width) = (self.shared_expert(x, experts.form)?, self.config.width);
        let sum = self.push(Op::Add, &[mixed, shared], width, "ffn_shared_sum");
        let half = Op::Scale { factor: 0.5 };
        Ok(match experts.shared {
            SharedExpert::OptionalAveraged => self.push(half, &[sum], width, "ffn_shared_mean"),
            _ => sum,
        })
    }

    /// The choice of experts by the rows of `logits`.
    pub(crate) fn route(
        &mut self,
        logits: ValueId,
        experts: &ExpertsConfig,
    ) -> Result<ValueId, ModelError> {
        const BIAS: &str = "exp_probs_b.bias";
        // Files of HY V3 leave out the end of the name.
        let bias = self.name(if self.has(BIAS) { BIAS } else { "exp_probs_b" });
        let op = RouteOp {
            used: experts.used,
            score: experts.score,
            bias: self.opt_vector(&bias, experts.count)?,
            groups: experts.groups,
            is_normalised: experts.is_normalised,
            scale: experts.scale,
        };
        Ok(self.push(Op::Route(op), &[logits], 2 * experts.used, "ffn_route"))
    }

    /// As [`mixed_experts`](Builder::mixed_experts), of fewer values per row where the layer has products that make these, and that
    /// make whole rows of what experts make.
    fn narrowed_experts(
        &mut self,
        [x, route]: [ValueId; 2],
        experts: &ExpertsConfig,
    ) -> Result<ValueId, ModelError> {
        if !self.has("ffn_latent_down.weight") {
            return self.mixed_experts([x, route], experts);
        }
        let narrow = self.columns("ffn_latent_up")?;
        let latent = self.linear("ffn_latent_down", x, narrow)?;
        let mixed = self.mixed_experts([latent, route], experts)?;
        self.linear("ffn_latent_up", mixed, self.config.width)
    }

    /// What the experts of a route, the second value, make of the first one together, and small experts that they share.
    pub(crate) fn mixed_experts(
        &mut self,
        [x, route]: [ValueId; 2],
        experts: &ExpertsConfig,
    ) -> Result<ValueId, ModelError> {
        let mixed = self.mixed_stack([x, route], experts, Stack::OWN)?;
        let Some(AdjugateExperts { group, scale }) = experts.adjugates else { return Ok(mixed) };
        let width = self.graph.value(x).width;
        let shared = self.mixed_stack([x, route], experts, Stack { group, ..Stack::ADJUGATE })?;
        let scaled = self.push(Op::Scale { factor: scale }, &[shared], width, "ffn_adjugate_scale");
        Ok(self.push(Op::Add, &[mixed, scaled], width, "ffn_adjugate_sum"))
    }

    /// What the experts of a route with these matrices make together.
    fn mixed_stack(
        &mut self,
        [x, route]: [ValueId; 2],
        experts: &ExpertsConfig,
        stack: Stack,
    ) -> Result<ValueId, ModelError> {
        let (count, width) = (experts.count, self.graph.value(x).width);
        let Stack { up, gate, gate_up, down, group, .. } = stack;
        let form = experts.form_of(self.config.blocks[self.layer_number()]);
        let (inner, cols) = (self.columns(down)?, width);
        let has_gate = !matches!(form, ExpertForm::Plain(_));
        let is_joined = has_gate && self.has(&format!("{gate_up}.weight"));
        let (up, gate) = if is_joined {
            let both = self.stacked(gate_up, [count, 2 * inner, cols], group)?;
            let half = |first| ExpertMatrix { first, rows: inner, ..both };
            (half(inner), Some(half(0)))
        } else {
            let up = self.stacked(up, [count, inner, cols], group)?;
            let gate = has_gate.then(|| self.stacked(gate, [count, inner, cols], group));
            (up, gate.transpose()?)
        };
        let op = ExpertsOp {
            count,
            used: experts.used,
            gate,
            up,
            form,
            down: self.stacked(down, [count, width, inner], group)?,
            weighs_input: experts.weighs_input,
        };
        let slots = experts.used * width;
        let made = self.push(Op::Experts(Box::new(op)), &[x, route], slots, stack.made);
        let op = Op::Mix { used: experts.used, is_weighted: !experts.weighs_input };
        Ok(self.push(op, &[made, route], width, stack.mix))
    }

    /// The block that all rows have beside their experts, gated if these are. Its output may have a gate of its own for each row.
    fn shared_expert(&mut self, x: ValueId, form: ExpertForm) -> Result<ValueId, ModelError> {
        let (width, inner) = (self.config.width, self.columns("ffn_down_shexp")?);
        if let ExpertForm::Plain(curve) = form {
            let up = self.linear("ffn_up_shexp", x, inner)?;
            let made = self.push(Op::Curve(curve), &[up], inner, "ffn_curve_shexp");
            return self.linear("ffn_down_shexp", made, width);
        }
        let [gate, up] = match self.has("ffn_gate_shexp.weight") {
            true => ["ffn_gate_shexp", "ffn_up_shexp"].map(|role| self.linear(role, x, inner)),
            false => ["ffn_gate_shexp", "ffn_up_shexp"].map(|role| {
                let first = if role == "ffn_up_shexp" { inner } else { 0 };
                let of =
                    Joined { name: "ffn_up_shexp", all: 2 * inner, rows: first..first + inner };
                self.joined_part(role, x, &of)
            }),
        };
        let made = self.gated_block([gate?, up?], GateRoles::SHARED);
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

    /// A matrix of each expert: `[experts, rows, columns]`. Experts of a group of more than one share theirs, of which each gets a copy.
    fn stacked(
        &mut self,
        role: &str,
        [count, rows, cols]: [usize; 3],
        group: usize,
    ) -> Result<ExpertMatrix, ModelError> {
        let [weight, bias, scale, unread] = ["weight", "bias", "scale", "input_scale"]
            .map(|part| self.name(&format!("{role}.{part}")));
        self.used.insert(unread);
        if group > 1 {
            let weight = self.repeated_rows(&weight, [count, rows, cols], group)?;
            return Ok(ExpertMatrix {
                weight,
                stride: rows,
                first: 0,
                rows,
                bias: None,
                scale: None,
            });
        }
        let weight = self.matrix(&weight, count * rows, cols)?;
        let bias = match self.tensors.find(&bias) {
            Some(_) => Some(self.matrix(&bias, count, rows)?),
            None => None,
        };
        let scale = self.opt_vector(&scale, count)?;
        Ok(ExpertMatrix { weight, stride: rows, first: 0, rows, bias, scale })
    }
}

/// Names of the matrices of experts and of what these make, and how many experts share each.
#[derive(Clone, Copy, Debug)]
struct Stack {
    up: &'static str,
    gate: &'static str,
    gate_up: &'static str,
    down: &'static str,
    made: &'static str,
    mix: &'static str,
    group: usize,
}

impl Stack {
    const OWN: Stack = Stack {
        up: "ffn_up_exps",
        gate: "ffn_gate_exps",
        gate_up: "ffn_gate_up_exps",
        down: "ffn_down_exps",
        made: "ffn_experts",
        mix: "ffn_mix",
        group: 1,
    };

    const ADJUGATE: Stack = Stack {
        up: "ffn_up_chexps",
        gate: "ffn_gate_chexps",
        gate_up: "ffn_gate_up_chexps",
        down: "ffn_down_chexps",
        made: "ffn_adjugates",
        mix: "ffn_adjugate_mix",
        group: 1,
    };
}
