//! Delta nets whose states fade by a factor for each value of a key (Kimi Delta Attention, 2025).

use super::super::{ModelError, RecurrentSizes};
use super::Builder;
use super::weights::Product;
use crate::graph::ValueId;
use crate::op::{Activation, Curve, LinearAttentionOp, Op, StateRule};

impl Builder<'_> {
    /// A delta net with convolutions of queries, keys and values apart, and a norm of each head. Factors and gates are products, or two each
    /// with a short row between them where the file has the second.
    pub(crate) fn channel_delta_net(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let sizes = self.recurrent();
        let (heads, width) = (sizes.heads, sizes.value_width());
        let parts = [("attn_q", width), ("attn_k", width), ("attn_v", width)];
        let [q, k, v] = self.parts_or_whole("attn_qkv", x, parts)?;
        let q = self.convolved("ssm_conv1d_q", 0, q)?;
        let k = self.convolved("ssm_conv1d_k", 1, k)?;
        let v = self.convolved("ssm_conv1d_v", 2, v)?;
        let (q, k) = (self.unit("delta_q_unit", q), self.unit("delta_k_unit", k));
        let rate = self.linear("ssm_beta", x, heads)?;
        let rate = self.curve(Curve::Sigmoid, rate, "delta_rate");
        let keep = self.kept_by_channel(x)?;
        let op = LinearAttentionOp {
            rule: StateRule::Delta,
            scale: (sizes.key_dim as f32).sqrt().recip(),
            ..self.added_up(3)
        };
        let op = Op::LinearAttention(Box::new(op));
        let read = self.push(op, &[q, k, v, keep, rate], width, "delta_net");
        let normed = self.norm_of_values(read)?;
        let gate = match self.has("ssm_g_b.weight") {
            true => {
                let short = self.linear("ssm_g_a", x, sizes.value_dim)?;
                self.linear("ssm_g_b", short, width)?
            }
            false => self.linear("ssm_g_a", x, width)?,
        };
        let gated = Op::Gated(Activation::Sigmoid);
        let gated = self.push(gated, &[gate, normed], width, "ssm_gated");
        self.linear("attn_output", gated, self.config.width)
    }

    /// What stays of each row of a state: exp(a·softplus(x)), or with a least logarithm exp(least·σ(a·x)).
    fn kept_by_channel(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let RecurrentSizes { heads, key_dim, .. } = self.recurrent();
        let width = heads * key_dim;
        let (role, x) = match self.has("ssm_f_b.weight") {
            true => ("ssm_f_b", self.linear("ssm_f_a", x, key_dim)?),
            false => ("ssm_f_a", x),
        };
        let cols = self.graph.value(x).width;
        let weight = self.matrix(&self.name(&format!("{role}.weight")), width, cols)?;
        let bias = Some(self.vector(&self.name("ssm_dt.bias"), width)?);
        let decay = self.product(role, x, Product { weight, bias, width, role })?;
        let decay = match self.config.least_decay {
            None => {
                let decay = self.curve(Curve::Softplus, decay, "delta_softplus");
                self.scaled_heads("ssm_a", decay, heads)?
            }
            Some(factor) => {
                let decay = self.scaled_heads("ssm_a", decay, heads)?;
                let decay = self.curve(Curve::Sigmoid, decay, "delta_sigmoid");
                self.push(Op::Scale { factor }, &[decay], width, "delta_decay")
            }
        };
        Ok(self.curve(Curve::Exp, decay, "delta_keep"))
    }
}
