//! Embeddings that each layer has of its own: a row of a table for each token, and a projection of the token's embedding
//! (Gemma 3n, 2025).

use super::super::ModelError;
use super::Builder;
use crate::graph::ValueId;
use crate::op::Op;

impl Builder<'_> {
    /// Computes the embeddings of all layers for the embeddings `x`, if the model has any: with P values for each layer,
    /// (√P·row + norm(projection of x / √width)) / √2.
    pub(crate) fn add_layer_inputs(&mut self, x: ValueId) -> Result<(), ModelError> {
        let c = self.config;
        let (each, all) = (c.layer_input_width, c.layers * c.layer_input_width);
        if each == 0 {
            return Ok(());
        }
        let table = self.token_table("per_layer_token_embd.weight", all)?;
        let scale = (each as f32).sqrt();
        let rows = self.push(Op::Lookup { table, scale }, &[], all, "per_layer_embed");
        let projected = self.linear("per_layer_model_proj", x, all)?;
        let weight = Some(self.vector("per_layer_proj_norm.weight", each)?);
        // The norm of x / √width is that of x, if its epsilon is multiplied by the width.
        let norm = Op::RmsNorm { weight, group: each, eps: c.norm_eps * c.width as f32 };
        let normed = self.push(norm, &[projected], all, "per_layer_proj_norm");
        let sum = self.push(Op::Add, &[normed, rows], all, "per_layer_sum");
        let half = Op::Scale { factor: std::f32::consts::FRAC_1_SQRT_2 };
        self.layer_inputs = Some(self.push(half, &[sum], all, "per_layer_inputs"));
        Ok(())
    }

    /// The current layer's embedding: of selected rows only, where the hidden states have only these.
    fn layer_input(&mut self) -> Option<ValueId> {
        let (all, width) = (self.layer_inputs?, self.config.layer_input_width);
        let op = Op::Columns { first: self.layer_number() * width, times: 1 };
        let own = self.push(op, &[all], width, "per_layer_input");
        Some(match self.is_last() {
            true => self.continuing(own, width, "select_per_layer_input"),
            false => own,
        })
    }

    /// Adds what the current layer's embedding makes of `x` to `x`.
    pub(crate) fn add_layer_input(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let added = self.gated_layer_input(x)?;
        let width = self.config.width;
        Ok(added.map_or(x, |added| self.push(Op::Add, &[added, x], width, "per_layer_residual")))
    }

    /// norm(proj(activation(gate(x)) · embedding of the layer)), if layers have embeddings.
    pub(crate) fn gated_layer_input(&mut self, x: ValueId) -> Result<Option<ValueId>, ModelError> {
        let c = self.config;
        let Some(own) = self.layer_input() else { return Ok(None) };
        let gate = self.linear("inp_gate", x, c.layer_input_width)?;
        let gated = Op::Gated(c.activation);
        let gated = self.push(gated, &[gate, own], c.layer_input_width, "per_layer_gated");
        let back = self.linear("proj", gated, c.width)?;
        self.norm("post_norm", back).map(Some)
    }
}
