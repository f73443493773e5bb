//! Nodes of decoders: whole layers of the usual forms, and their parts.

use super::super::architectures::Decoder;
use super::super::{LayerAttention, ModelError};
use super::Builder;
use crate::graph::{ValueId, WeightId};
use crate::mask::Mask;
use crate::op::{AttentionOp, Op, RopeScaling, RopeSpec};

/// Indices of the rotary embeddings of layers with full attention, and of those with a window.
#[derive(Clone, Copy, Default)]
pub(super) struct Ropes {
    full: usize,
    window: usize,
}

/// How queries and keys are normalised before the rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QkNorm {
    /// Not at all.
    None,
    /// Each head by itself.
    Heads,
    /// All heads of a row together.
    Rows,
}

/// Norms of a layer, by the names of their tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norms {
    pub(crate) before_attention: Option<&'static str>,
    pub(crate) after_attention: Option<&'static str>,
    pub(crate) before_feed_forward: Option<&'static str>,
    pub(crate) after_feed_forward: Option<&'static str>,
}

impl Norms {
    /// Before each block.
    pub(crate) const BEFORE: Norms = Norms {
        before_attention: Some("attn_norm"),
        after_attention: None,
        before_feed_forward: Some("ffn_norm"),
        after_feed_forward: None,
    };

    /// After each block.
    pub(crate) const AFTER: Norms = Norms {
        before_attention: None,
        after_attention: Some("post_attention_norm"),
        before_feed_forward: None,
        after_feed_forward: Some("post_ffw_norm"),
    };

    /// Before and after each block.
    pub(crate) const BOTH: Norms = Norms {
        before_attention: Norms::BEFORE.before_attention,
        before_feed_forward: Norms::BEFORE.before_feed_forward,
        ..Norms::AFTER
    };
}

impl Builder<'_> {
    /// All nodes of a decoder.
    ///
    /// With x + r·block(norm(x)) for the factor r on what a block adds, the hidden states are kept divided by r: y +
    /// block(norm(y)) is the same, as the RMS norm of y is that of x if its epsilon is divided by r².
    pub(super) fn decoder(&mut self, family: &dyn Decoder) -> Result<(), ModelError> {
        self.add_ropes()?;
        let c = self.config;
        let table = self.embedding()?;
        let scale = c.embedding_scale / c.residual_scale;
        let mut x = self.push(Op::Embed { table, scale }, &[], c.width, "embed");
        for layer in 0..c.layers {
            self.layer = Some(layer);
            x = family.layer(self, x)?;
        }
        self.layer = None;
        let normed = self.norm("output_norm", x)?;
        self.head(normed, table)
    }

    /// A layer: attention and the gated feed-forward block, each added to its input.
    pub(crate) fn layer(
        &mut self,
        x: ValueId,
        qk: QkNorm,
        norms: Norms,
    ) -> Result<ValueId, ModelError> {
        let normed = self.norm_if(norms.before_attention, x)?;
        let attended = self.attention(normed, qk)?;
        let attended = self.norm_if(norms.after_attention, attended)?;
        let x = self.add_attended(attended, x);
        let normed = self.norm_if(norms.before_feed_forward, x)?;
        let fed = self.feed_forward(normed)?;
        let fed = self.norm_if(norms.after_feed_forward, fed)?;
        Ok(self.add_fed(fed, x))
    }

    fn norm_if(&mut self, role: Option<&'static str>, x: ValueId) -> Result<ValueId, ModelError> {
        role.map_or(Ok(x), |role| self.norm(role, x))
    }

    /// Attention of the current layer, with its projections.
    pub(crate) fn attention(&mut self, x: ValueId, qk: QkNorm) -> Result<ValueId, ModelError> {
        let c = self.config;
        let layer = self.layer.unwrap_or_default();
        let (q_width, kv_width) = (c.heads * c.head_dim, c.kv_width());
        let [mut q, mut k, v] = self.projections(x)?;
        q = self.qk_norm("attn_q_norm", q, qk)?;
        k = self.qk_norm("attn_k_norm", k, qk)?;
        let (rope, window) = match c.layer_attention(layer) {
            LayerAttention::Full => (self.ropes.full, None),
            LayerAttention::Window(window) => (self.ropes.window, Some(window)),
        };
        if c.rotated[layer] {
            q = self.push(Op::Rope { heads: c.heads, rope }, &[q], q_width, "rope_q");
            k = self.push(Op::Rope { heads: c.kv_heads, rope }, &[k], kv_width, "rope_k");
        }
        let op = AttentionOp {
            layer,
            scale: c.score_scale,
            window,
            mask: Mask::Causal,
            soft_cap: c.attention_cap,
        };
        let mixed = self.push(Op::Attention(op), &[q, k, v], q_width, "attention");
        self.linear("attn_output", mixed, c.width)
    }

    /// The gated feed-forward block.
    pub(crate) fn feed_forward(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let c = self.config;
        let gate = self.linear("ffn_gate", x, c.ffn_width)?;
        let up = self.linear("ffn_up", x, c.ffn_width)?;
        let inner = self.push(Op::Gated(c.activation), &[gate, up], c.ffn_width, "ffn_gated");
        self.linear("ffn_down", inner, c.width)
    }

    /// The RMS norm of whole rows.
    pub(crate) fn norm(&mut self, role: &'static str, x: ValueId) -> Result<ValueId, ModelError> {
        self.norm_of_groups(role, x, self.graph.value(x).width)
    }

    fn qk_norm(
        &mut self,
        role: &'static str,
        x: ValueId,
        qk: QkNorm,
    ) -> Result<ValueId, ModelError> {
        match qk {
            QkNorm::None => Ok(x),
            QkNorm::Heads => self.norm_of_groups(role, x, self.config.head_dim),
            QkNorm::Rows => self.norm(role, x),
        }
    }

    fn norm_of_groups(
        &mut self,
        role: &'static str,
        x: ValueId,
        group: usize,
    ) -> Result<ValueId, ModelError> {
        let width = self.graph.value(x).width;
        let weight = self.vector(&self.name(&format!("{role}.weight")), group)?;
        let eps = self.config.norm_eps / self.config.residual_scale.powi(2);
        Ok(self.push(Op::RmsNorm { weight, eps }, &[x], width, role))
    }

    fn add_ropes(&mut self) -> Result<(), ModelError> {
        let c = self.config;
        let factors = self.opt_vector("rope_freqs.weight", c.rope_dims / 2)?;
        self.ropes.full = self.graph.add_rope(RopeSpec {
            base: c.rope_base,
            dims: c.rope_dims,
            pairs: c.rope_pairs,
            scaling: c.rope_scaling,
            factors,
        });
        let is_scaled = c.window_rope_is_scaled;
        let scaling = if is_scaled { c.rope_scaling } else { RopeScaling::None };
        let factors = factors.filter(|_| is_scaled);
        let full = &self.graph.ropes()[self.ropes.full];
        let window = RopeSpec { base: c.rope_base_window, scaling, factors, ..full.clone() };
        let is_other = window != *full && c.windowed.contains(&true);
        self.ropes.window = if is_other { self.graph.add_rope(window) } else { self.ropes.full };
        Ok(())
    }

    fn head(&mut self, x: ValueId, table: WeightId) -> Result<(), ModelError> {
        let c = self.config;
        let vocab = self.graph.weights()[table.0].rows;
        let (weight, rows) = self.output_matrix(table)?;
        let bias = self.opt_part("output.bias", 1, rows, 0..vocab)?;
        let mut logits = self.push(Op::MatMul { weight, bias }, &[x], vocab, "output");
        if c.logit_scale != 1.0 {
            let op = Op::Scale { factor: c.logit_scale };
            logits = self.push(op, &[logits], vocab, "logit_scale");
        }
        if let Some(cap) = c.logit_cap {
            self.push(Op::SoftCap { cap }, &[logits], vocab, "logit_cap");
        }
        Ok(())
    }
}
