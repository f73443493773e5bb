//! Layers: their forms, and the nodes of attention and of feed-forward blocks.

use super::super::{LayerAttention, ModelError, SinkLayers};
use super::limits::GateRoles;
use super::{AttentionGate, Builder, GateCurve, Norms, QkNorm};
use crate::graph::ValueId;
use crate::mask::{BlockList, Mask};
use crate::op::{AttentionOp, Curve, Op};

/// What a layer consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerForm {
    pub(crate) qk: QkNorm,
    pub(crate) gate: AttentionGate,
    pub(crate) gate_curve: GateCurve,
    pub(crate) norms: Norms,
    pub(crate) feed_forward: FeedForward,
    pub(crate) order: Order,
}

impl LayerForm {
    /// Pre-norm, with a gated feed-forward block.
    pub(crate) const PLAIN: LayerForm = LayerForm {
        qk: QkNorm::None,
        gate: AttentionGate::None,
        gate_curve: GateCurve::Sigmoid,
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
        let attended = self.norm_after(norms.after_attention, attended, norms)?;
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
        let norms = form.norms;
        let fed = self.feed_forward(read, form)?;
        let fed = self.norm_after(norms.after_feed_forward, fed, norms)?;
        Ok(self.add_fed(fed, sum))
    }

    /// Attention of the current layer, with its projections.
    pub(crate) fn attention(
        &mut self,
        x: ValueId,
        form: &LayerForm,
    ) -> Result<ValueId, ModelError> {
        let (c, heads) = (self.config, self.heads());
        let (projected, gates) = self.gated_projections(x, form.gate)?;
        let [mut q, mut k, v] = projected.map(|value| self.clamp(value));
        if !form.qk.is_rotated() {
            q = self.qk_norm("attn_q_norm", q, form.qk)?;
            k = self.qk_norm("attn_k_norm", k, form.qk)?;
        }
        if c.rotated[self.layer_number()] {
            q = self.rotated("rope_q", q, heads.count);
            k = self.rotated("rope_k", k, heads.kv.count);
        }
        if form.qk.is_rotated() {
            q = self.qk_norm("attn_q_norm", q, form.qk)?;
            k = self.qk_norm("attn_k_norm", k, form.qk)?;
        }
        q = self.warmed(q);
        let mixed = self.attended(&[q, k, v])?;
        let mixed = self.gated(gates, mixed, form.gate_curve);
        let mixed = self.norm_if(form.norms.inside_attention, mixed)?;
        let attended = self.linear("attn_output", mixed, c.width)?;
        if c.attention_scale == 1.0 {
            return Ok(attended);
        }
        let op = Op::Scale { factor: c.attention_scale };
        Ok(self.push(op, &[attended], c.width, "attention_scale"))
    }

    /// Rotary embedding of the current layer, for so many heads.
    pub(crate) fn rotated(&mut self, role: &'static str, x: ValueId, heads: usize) -> ValueId {
        let (rope, width) = (self.ropes[self.layer_number()], self.graph.value(x).width);
        self.push(Op::Rope { heads, rope }, &[x], width, role)
    }

    /// What the current layer's attention makes of queries, keys and values, or of queries alone, and the projection of it.
    pub(crate) fn mixed(&mut self, inputs: &[ValueId]) -> Result<ValueId, ModelError> {
        let mixed = self.attended(inputs)?;
        self.linear("attn_output", mixed, self.config.width)
    }

    /// What the current layer's attention makes of queries, keys and values, or of queries alone.
    pub(super) fn attended(&mut self, inputs: &[ValueId]) -> Result<ValueId, ModelError> {
        let (c, layer, width) = (self.config, self.layer_number(), self.heads().mixed_width());
        let (mask, window) = match (c.layer_attention(layer), c.arch.is_encoder()) {
            (LayerAttention::Full, false) => (Mask::Causal, None),
            (LayerAttention::Full, true) => (Mask::Full, None),
            (LayerAttention::Window(window), false) => (Mask::Causal, Some(window)),
            // Half of an encoder's window is behind a row.
            (LayerAttention::Window(window), true) => (Mask::Around(window / 2), None),
            (LayerAttention::Chunk(len), _) => (chunks(len, self.wanted.context), None),
        };
        let (sinks, count) = (self.name("attn_sinks.weight"), self.heads().count);
        let sinks = match c.sinks {
            SinkLayers::None => None,
            SinkLayers::Some => self.opt_vector(&sinks, count)?,
            SinkLayers::All => Some(self.vector(&sinks, count)?),
        };
        let op = AttentionOp {
            layer: c.kv_layer(layer),
            scale: c.score_scale,
            window,
            mask,
            soft_cap: c.attention_cap,
            alibi: c.alibi,
            sinks,
        };
        Ok(self.push(Op::Attention(op), inputs, width, "attention"))
    }

    /// Queries times the factor of their position, if the model has one.
    pub(super) fn warmed(&mut self, q: ValueId) -> ValueId {
        let (width, c) = (self.graph.value(q).width, self.config);
        let temperature = match c.rotated[self.layer_number()] {
            true => c.temperature,
            false => c.temperature_unrotated,
        };
        temperature.map_or(q, |t| self.push(Op::Temperature(t), &[q], width, "q_temperature"))
    }

    fn clamp(&mut self, x: ValueId) -> ValueId {
        let Some(limit) = self.config.qkv_limit else { return x };
        let width = self.graph.value(x).width;
        self.push(Op::Curve(Curve::Clamp { limit }), &[x], width, "clamp_qkv")
    }

    /// The feed-forward block, or the experts in its place.
    pub(crate) fn feed_forward(
        &mut self,
        x: ValueId,
        form: &LayerForm,
    ) -> Result<ValueId, ModelError> {
        match self.experts() {
            Some(experts) => self.expert_block(x, experts),
            None => self.dense_block(x, form),
        }
    }

    /// The feed-forward block that is the same for all rows.
    pub(crate) fn dense_block(
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
                self.gated_block([gate, up], GateRoles::DENSE)
            }
            FeedForward::Plain(curve) => {
                let up = self.linear("ffn_up", x, width)?;
                self.push(Op::Curve(curve), &[up], width, "ffn_curve")
            }
        };
        let inner = self.norm_if(form.norms.inside_feed_forward, inner)?;
        self.linear("ffn_down", inner, c.width)
    }
}

/// A row sees the positions of its own chunk of that length, up to itself, in sequences up to that length.
fn chunks(len: usize, context: usize) -> Mask {
    if context <= len {
        return Mask::Causal;
    }
    let blocks = u32::try_from(context.div_ceil(len)).unwrap_or(u32::MAX);
    match BlockList::local_and_global(len, 1, 0, blocks) {
        Ok(blocks) => Mask::blocks(blocks),
        Err(error) => unreachable!("chunks of {len} positions: {error}"),
    }
}
