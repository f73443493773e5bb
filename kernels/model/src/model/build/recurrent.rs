//! Linear attention behind a short convolution, in place of attention or beside it: gated delta nets (Yang et al., 2024) and Mamba-2
//! (Dao and Gu, 2024).

use super::super::config::score_scale;
use super::super::{ModelError, RecurrentSizes};
use super::Builder;
use super::head_rows::HeadRows;
use super::weights::{Joined, Product};
use crate::graph::ValueId;
use crate::op::{Activation, Curve, KeyOrder, LinearAttentionOp, Op, ShortConvOp, StateRule};

impl Builder<'_> {
    /// A gated delta net: queries and keys of length 1, and a norm of each head before the gate.
    pub(crate) fn delta_net(
        &mut self,
        x: ValueId,
        key_order: KeyOrder,
    ) -> Result<ValueId, ModelError> {
        let sizes = self.recurrent();
        let (keys, width) = (sizes.key_width(), sizes.value_width());
        let [qkv, z] = self.delta_inputs(x)?;
        let [rate, decay] = self.delta_rates(x)?;
        let mixed = self.convolved("ssm_conv1d", 0, qkv)?;
        let first = Op::Columns { first: 0, times: 1 };
        let both = self.push(first, &[mixed], 2 * keys, "delta_qk");
        let unit = self.unit("delta_qk_unit", both);
        let rate = self.curve(Curve::Sigmoid, rate, "delta_rate");
        let factors = Op::ScaleBy { weight: self.vector(&self.name("ssm_a"), sizes.heads)? };
        let decay = self.curve(Curve::Softplus, decay, "delta_softplus");
        let decay = self.push(factors, &[decay], sizes.heads, "delta_decay");
        let keep = self.curve(Curve::Exp, decay, "delta_keep");
        let op = LinearAttentionOp {
            key_order,
            first: [0, keys, 2 * keys],
            rule: StateRule::Delta,
            scale: score_scale(sizes.key_dim),
            ..self.added_up(1)
        };
        let op = Op::LinearAttention(Box::new(op));
        let read = self.push(op, &[unit, unit, mixed, keep, rate], width, "delta_net");
        let normed = self.norm_of_values(read)?;
        let gated = self.push(Op::Gated(Activation::Silu), &[z, normed], width, "ssm_gated");
        self.linear("ssm_out", gated, self.config.width)
    }

    /// Mamba-2: gates before the norm of each group, which files may lack if `may_lack_norm`.
    pub(crate) fn mamba2(
        &mut self,
        x: ValueId,
        may_lack_norm: bool,
    ) -> Result<ValueId, ModelError> {
        const NAME: &str = "ssm_in";
        let sizes = self.recurrent();
        let (keys, width, conv) = (sizes.key_width(), sizes.value_width(), sizes.conv_width());
        let all = width + conv + sizes.heads;
        let mut part = |role, rows| self.joined_part(role, x, &Joined { name: NAME, all, rows });
        let (z, xbc) = (part("ssm_z", 0..width)?, part("ssm_xbc", width..width + conv)?);
        // Its bias has the name of this part.
        let rate = part("ssm_dt", width + conv..all)?;
        self.vector(&self.name("ssm_dt.bias"), sizes.heads)?;
        let mixed = self.convolved("ssm_conv1d", 0, xbc)?;
        let rate = self.curve(Curve::Softplus, rate, "ssm_rate");
        let decay = self.scaled_heads("ssm_a", rate, sizes.heads)?;
        let keep = self.curve(Curve::Exp, decay, "ssm_keep");
        let skip = Some(self.column("ssm_d", sizes.heads, 1)?);
        let first = [width + keys, width, 0];
        let op = LinearAttentionOp { first, skip, ..self.added_up(1) };
        let op = Op::LinearAttention(Box::new(op));
        let read = self.push(op, &[mixed, mixed, mixed, keep, rate], width, "ssm");
        let gated = self.push(Op::Gated(Activation::Silu), &[z, read], width, "ssm_gated");
        let normed = match may_lack_norm && !self.has("ssm_norm.weight") {
            true => gated,
            false => self.norm_of_key_heads(gated)?,
        };
        self.linear("ssm_out", normed, self.config.width)
    }

    /// Heads of queries or keys at length 1: x / √(Σx² + ε).
    pub(super) fn unit(&mut self, role: &'static str, x: ValueId) -> ValueId {
        let (group, width) = (self.recurrent().key_dim, self.graph.value(x).width);
        // That is the norm with ε / n, divided by √n.
        let eps = self.config.norm_eps / group as f32;
        let norm = Op::RmsNorm { weight: None, group, eps };
        let normed = self.push(norm, &[x], width, "delta_norm");
        self.push(Op::Scale { factor: score_scale(group) }, &[normed], width, role)
    }

    /// A norm of each head of values.
    pub(super) fn norm_of_values(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let (group, width) = (self.recurrent().value_dim, self.graph.value(x).width);
        let weight = Some(self.vector(&self.name("ssm_norm.weight"), group)?);
        let norm = Op::RmsNorm { weight, group, eps: self.config.norm_eps };
        Ok(self.push(norm, &[x], width, "ssm_norm"))
    }

    /// Norms of the heads that share keys, together, with weights of their own.
    fn norm_of_key_heads(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let group = self.graph.value(x).width / self.recurrent().key_heads;
        self.norm_of_own_groups("ssm_norm", x, group, self.config.norm_eps)
    }

    /// Queries, keys and values side by side, and the gates: products with two matrices, or with one that has the rows of each head of
    /// keys together.
    fn delta_inputs(&mut self, x: ValueId) -> Result<[ValueId; 2], ModelError> {
        let sizes = self.recurrent();
        if !self.has("ssm_in.weight") {
            let mixed = self.linear("attn_qkv", x, sizes.conv_width())?;
            return Ok([mixed, self.linear("attn_gate", x, sizes.value_width())?]);
        }
        let (d, shared) = (sizes.key_dim, sizes.heads / sizes.key_heads * sizes.value_dim);
        let (name, heads, each) = ("ssm_in", sizes.key_heads, 2 * (d + shared));
        let mut part =
            |role, rows| self.head_rows(role, x, &HeadRows { name, heads, each, rows, bias: None });
        let (q, k) = (part("delta_q", 0..d)?, part("delta_k", d..2 * d)?);
        let v = part("delta_v", 2 * d..2 * d + shared)?;
        let z = part("delta_z", 2 * d + shared..each)?;
        let both = self.beside("delta_qk", q, k);
        Ok([self.beside("delta_qkv", both, v), z])
    }

    /// What makes the rates and the decays: products with two matrices, or with one that has the rows of each head of keys together.
    fn delta_rates(&mut self, x: ValueId) -> Result<[ValueId; 2], ModelError> {
        let (heads, key_heads) = (self.recurrent().heads, self.recurrent().key_heads);
        let bias = Some(self.vector(&self.name("ssm_dt.bias"), heads)?);
        if !self.has("ssm_ba.weight") {
            let rate = self.linear("ssm_beta", x, heads)?;
            let cols = self.graph.value(x).width;
            let weight = self.matrix(&self.name("ssm_alpha.weight"), heads, cols)?;
            let product = Product { weight, bias, width: heads, role: "ssm_alpha" };
            return Ok([rate, self.product("ssm_alpha", x, product)?]);
        }
        let shared = heads / key_heads;
        let of = |rows, bias| HeadRows {
            name: "ssm_ba",
            heads: key_heads,
            each: 2 * shared,
            rows,
            bias,
        };
        let rate = self.head_rows("ssm_beta", x, &of(0..shared, None))?;
        Ok([rate, self.head_rows("ssm_alpha", x, &of(shared..2 * shared, bias))?])
    }

    /// A convolution before linear attention, with SiLU, and that one of the states of the layer.
    pub(super) fn convolved(
        &mut self,
        name: &str,
        state: usize,
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        let (sizes, width) = (self.recurrent(), self.graph.value(x).width);
        let weight = self.matrix(&self.name(&format!("{name}.weight")), width, sizes.taps)?;
        let bias = self.opt_vector(&self.name(&format!("{name}.bias")), width)?;
        let state = self.config.state_layer(self.layer_number()) + state;
        let op = ShortConvOp { weight, bias, is_silu: true, state };
        Ok(self.push(Op::ShortConv(op), &[x], width, "conv"))
    }

    /// Heads of the current layer that add rate·v, neighbours with the same keys, with that one of the states of the layer.
    pub(super) fn added_up(&self, state: usize) -> LinearAttentionOp {
        let sizes = self.recurrent();
        LinearAttentionOp {
            heads: sizes.heads,
            key_heads: sizes.key_heads,
            key_order: KeyOrder::Blocks,
            key_dim: sizes.key_dim,
            value_dim: sizes.value_dim,
            first: [0; 3],
            rule: StateRule::Add,
            scale: 1.0,
            skip: None,
            decay: None,
            state: self.config.state_layer(self.layer_number()) + state,
        }
    }

    pub(super) fn curve(&mut self, curve: Curve, x: ValueId, role: &'static str) -> ValueId {
        let width = self.graph.value(x).width;
        self.push(Op::Curve(curve), &[x], width, role)
    }

    pub(super) fn recurrent(&self) -> RecurrentSizes {
        self.config.recurrent.unwrap_or_else(|| unreachable!("layers with states have sizes"))
    }
}
