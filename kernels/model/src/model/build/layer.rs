//! Layers: their forms, and the nodes of attention and of feed-forward blocks.

use super::super::config::NormKind;
use super::super::{LayerAttention, ModelError};
use super::Builder;
use crate::graph::ValueId;
use crate::mask::Mask;
use crate::op::{AttentionOp, Curve, Op};

/// What a layer consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerForm {
    pub(crate) qk: QkNorm,
    pub(crate) norms: Norms,
    pub(crate) feed_forward: FeedForward,
    pub(crate) order: Order,
}

impl LayerForm {
    /// Pre-norm, with a gated feed-forward block.
    pub(crate) const PLAIN: LayerForm = LayerForm {
        qk: QkNorm::None,
        norms: Norms::BEFORE,
        feed_forward: FeedForward::Gated,
        order: Order::Sequential,
    };
}

/// A feed-forward block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FeedForward {
    /// activation(gate)·up. Both are products with matrices of their own, or with halves of one, the gate first. In layers with
    /// a sparse gate only what exceeds most of its values is left of it.
    Gated,
    /// curve(up).
    Plain(Curve),
}

/// What a feed-forward block reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The sum of the layer's input and attention.
    Sequential,
    /// The layer's input, with the norm of attention if it has none of its own.
    Parallel,
}

/// How queries and keys are normalised: before the rotation, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QkNorm {
    /// Not at all.
    None,
    /// Each head by itself.
    Heads,
    /// All heads of a row together.
    Rows,
    /// Each head by itself, after the rotation.
    RotatedHeads,
}

/// Norms of a layer, by the names of their tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norms {
    pub(crate) before_attention: Option<&'static str>,
    pub(crate) after_attention: Option<&'static str>,
    pub(crate) before_feed_forward: Option<&'static str>,
    pub(crate) after_feed_forward: Option<&'static str>,
    /// Before the last product of attention.
    pub(crate) inside_attention: Option<&'static str>,
    /// Before the last product of the feed-forward block.
    pub(crate) inside_feed_forward: Option<&'static str>,
}

impl Norms {
    /// Before each block.
    pub(crate) const BEFORE: Norms = Norms {
        before_attention: Some("attn_norm"),
        after_attention: None,
        before_feed_forward: Some("ffn_norm"),
        after_feed_forward: None,
        inside_attention: None,
        inside_feed_forward: None,
    };

    /// After each block.
    pub(crate) const AFTER: Norms = Norms {
        before_attention: None,
        after_attention: Some("post_attention_norm"),
        before_feed_forward: None,
        after_feed_forward: Some("post_ffw_norm"),
        ..Norms::BEFORE
    };

    /// Before and after each block.
    pub(crate) const BOTH: Norms = Norms {
        before_attention: Norms::BEFORE.before_attention,
        before_feed_forward: Norms::BEFORE.before_feed_forward,
        ..Norms::AFTER
    };
}

impl Builder<'_> {
    /// A layer of that form: attention and the feed-forward block, each added to its input.
    pub(crate) fn layer(&mut self, x: ValueId, form: LayerForm) -> Result<ValueId, ModelError> {
        let normed = self.norm_if(form.norms.before_attention, x)?;
        let attended = self.attention(normed, &form)?;
        self.after_attention([x, normed, attended], form)
    }

    /// The rest of a layer: adds attention, and then the feed-forward block, to the layer's input. The values are that input, what
    /// attention has read, and its output.
    pub(crate) fn after_attention(
        &mut self,
        [x, normed, attended]: [ValueId; 3],
        form: LayerForm,
    ) -> Result<ValueId, ModelError> {
        let norms = form.norms;
        let attended = self.norm_if(norms.after_attention, attended)?;
        let (sum, read) = match form.order {
            Order::Sequential => {
                let sum = self.add_attended(attended, x);
                (sum, self.norm_if(norms.before_feed_forward, sum)?)
            }
            Order::Parallel => {
                let read = match norms.before_feed_forward {
                    Some(own) => self.norm(own, x)?,
                    None => normed,
                };
                let sum = self.add_attended(attended, x);
                (sum, self.continued(read))
            }
        };
        self.after_sum([sum, read], &form)
    }

    /// The end of a layer: adds the feed-forward block, which reads the second value, to the first one.
    pub(crate) fn after_sum(
        &mut self,
        [sum, read]: [ValueId; 2],
        form: &LayerForm,
    ) -> Result<ValueId, ModelError> {
        let fed = self.feed_forward(read, form)?;
        let fed = self.norm_if(form.norms.after_feed_forward, fed)?;
        Ok(self.add_fed(fed, sum))
    }

    fn norm_if(&mut self, role: Option<&'static str>, x: ValueId) -> Result<ValueId, ModelError> {
        role.map_or(Ok(x), |role| self.norm(role, x))
    }

    /// Attention of the current layer, with its projections.
    pub(crate) fn attention(
        &mut self,
        x: ValueId,
        form: &LayerForm,
    ) -> Result<ValueId, ModelError> {
        let (c, heads) = (self.config, self.heads());
        let projected = self.projections(x)?;
        let [mut q, mut k, v] = projected.map(|value| self.clamp(value));
        if form.qk != QkNorm::RotatedHeads {
            q = self.qk_norm("attn_q_norm", q, form.qk)?;
            k = self.qk_norm("attn_k_norm", k, form.qk)?;
        }
        if c.rotated[self.layer_number()] {
            q = self.rotated("rope_q", q, heads.count);
            k = self.rotated("rope_k", k, heads.kv.count);
        }
        if form.qk == QkNorm::RotatedHeads {
            q = self.qk_norm("attn_q_norm", q, form.qk)?;
            k = self.qk_norm("attn_k_norm", k, form.qk)?;
        }
        if let Some(temperature) = c.temperature {
            q = self.push(Op::Temperature(temperature), &[q], heads.q_width(), "q_temperature");
        }
        self.mixed(&[q, k, v], form.norms.inside_attention)
    }

    /// Rotary embedding of the current layer, for so many heads.
    pub(crate) fn rotated(&mut self, role: &'static str, x: ValueId, heads: usize) -> ValueId {
        let (rope, width) = (self.ropes[self.layer_number()], self.graph.value(x).width);
        self.push(Op::Rope { heads, rope }, &[x], width, role)
    }

    /// What the current layer's attention makes of queries, keys and values, or of queries alone, and the projection of it,
    /// before which a norm may be.
    pub(crate) fn mixed(
        &mut self,
        inputs: &[ValueId],
        norm: Option<&'static str>,
    ) -> Result<ValueId, ModelError> {
        let (c, layer, width) = (self.config, self.layer_number(), self.heads().mixed_width());
        let (mask, window) = match (c.layer_attention(layer), c.arch.is_encoder()) {
            (LayerAttention::Full, false) => (Mask::Causal, None),
            (LayerAttention::Full, true) => (Mask::Full, None),
            (LayerAttention::Window(window), false) => (Mask::Causal, Some(window)),
            // Half of an encoder's window is behind a row.
            (LayerAttention::Window(window), true) => (Mask::Around(window / 2), None),
        };
        let op = AttentionOp {
            layer: c.kv_layer(layer),
            scale: c.score_scale,
            window,
            mask,
            soft_cap: c.attention_cap,
            alibi: c.alibi,
        };
        let mixed = self.push(Op::Attention(op), inputs, width, "attention");
        let mixed = self.norm_if(norm, mixed)?;
        self.linear("attn_output", mixed, c.width)
    }

    fn clamp(&mut self, x: ValueId) -> ValueId {
        let Some(limit) = self.config.qkv_limit else { return x };
        let width = self.graph.value(x).width;
        self.push(Op::Curve(Curve::Clamp { limit }), &[x], width, "clamp_qkv")
    }

    /// The feed-forward block.
    pub(crate) fn feed_forward(
        &mut self,
        x: ValueId,
        form: &LayerForm,
    ) -> Result<ValueId, ModelError> {
        let (c, width) = (self.config, self.ffn_width());
        let inner = match form.feed_forward {
            FeedForward::Gated => {
                let [mut gate, up] = self.gate_and_up(x)?;
                let sparse = c.sparse_gates.get(self.layer_number()).copied().flatten();
                if let Some(deviations) = sparse {
                    gate = self.push(Op::Excess { deviations }, &[gate], width, "ffn_gate_excess");
                }
                self.push(Op::Gated(c.activation), &[gate, up], width, "ffn_gated")
            }
            FeedForward::Plain(curve) => {
                let up = self.linear("ffn_up", x, width)?;
                self.push(Op::Curve(curve), &[up], width, "ffn_curve")
            }
        };
        let inner = self.norm_if(form.norms.inside_feed_forward, inner)?;
        self.linear("ffn_down", inner, c.width)
    }

    /// The norm of whole rows.
    pub(crate) fn norm(&mut self, role: &'static str, x: ValueId) -> Result<ValueId, ModelError> {
        self.norm_of_groups(role, x, self.graph.value(x).width)
    }

    pub(crate) fn qk_norm(
        &mut self,
        role: &'static str,
        x: ValueId,
        qk: QkNorm,
    ) -> Result<ValueId, ModelError> {
        match qk {
            QkNorm::None => Ok(x),
            QkNorm::Heads | QkNorm::RotatedHeads => {
                self.norm_of_groups(role, x, self.heads().kv.key_dim)
            }
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
        let [weight, bias] = ["weight", "bias"].map(|part| self.name(&format!("{role}.{part}")));
        let eps = self.config.norm_eps / self.config.residual_scale.powi(2);
        let op = match self.config.norm {
            NormKind::Rms => Op::RmsNorm { weight: Some(self.vector(&weight, group)?), group, eps },
            NormKind::Layer => {
                let weight = Some(self.matrix(&weight, width / group, group)?);
                let bias = match self.config.arch.has_biases() {
                    true => Some(self.vector(&bias, width)?),
                    false => self.opt_vector(&bias, width)?,
                };
                Op::LayerNorm { group, weight, bias, eps }
            }
            NormKind::LayerWithoutWeights => Op::LayerNorm { group, weight: None, bias: None, eps },
        };
        Ok(self.push(op, &[x], width, role))
    }
}
