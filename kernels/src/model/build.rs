//! Builds the op graph from hyper-parameters.

mod weights;

use std::collections::HashSet;

use super::tensors::Tensors;
use super::{LayerAttention, ModelConfig, ModelError};
use crate::graph::{Graph, NewNode, ValueId, WeightId};
use crate::mask::Mask;
use crate::op::{AttentionOp, Op, RopeScaling, RopeSpec};

/// Builds the graph and checks every tensor against it.
/// `tokens` is the number of tokens in the vocabulary, if it is known: rows of embeddings beyond it are left out, so
/// that no id without a token has a logit.
pub(super) fn build(
    config: &ModelConfig,
    tensors: &dyn Tensors,
    tokens: Option<usize>,
) -> Result<Graph, ModelError> {
    let mut builder = Builder {
        config,
        tensors,
        tokens,
        graph: Graph::default(),
        layer: None,
        used: HashSet::new(),
        ropes: Ropes::default(),
    };
    if config.arch.encoder {
        builder.encoder()?;
    } else {
        builder.add_ropes()?;
        builder.model()?;
    }
    builder.check_unused()?;
    Ok(builder.graph)
}

#[derive(Clone, Copy, Default)]
struct Ropes {
    full: usize,
    window: usize,
}

pub(super) struct Builder<'a> {
    pub(super) config: &'a ModelConfig,
    pub(super) tensors: &'a dyn Tensors,
    tokens: Option<usize>,
    graph: Graph,
    pub(super) layer: Option<usize>,
    used: HashSet<String>,
    ropes: Ropes,
}

impl Builder<'_> {
    fn add_ropes(&mut self) -> Result<(), ModelError> {
        let c = self.config;
        let factors = self.opt_vector("rope_freqs.weight", c.rope_dims / 2)?;
        self.ropes.full = self.graph.add_rope(RopeSpec {
            base: c.rope_base,
            dims: c.rope_dims,
            pairs: c.arch.pairs,
            scaling: c.rope_scaling,
            factors,
        });
        // Sliding-window layers with their own base (Gemma 3) are not scaled.
        let is_own = c.arch.window_rope_base.is_some();
        let is_other = c.rope_base_window != c.rope_base && c.arch.window_period > 0;
        self.ropes.window = if is_own || is_other {
            self.graph.add_rope(RopeSpec {
                base: c.rope_base_window,
                dims: c.rope_dims,
                pairs: c.arch.pairs,
                scaling: if is_own { RopeScaling::None } else { c.rope_scaling },
                factors: factors.filter(|_| !is_own),
            })
        } else {
            self.ropes.full
        };
        Ok(())
    }

    fn model(&mut self) -> Result<(), ModelError> {
        let c = self.config;
        let table = self.embedding()?;
        let scale = if c.arch.scaled_embedding { (c.width as f32).sqrt() } else { 1.0 };
        let mut x = self.push(Op::Embed { table, scale }, &[], c.width, "embed");
        for layer in 0..c.layers {
            self.layer = Some(layer);
            let attended = self.attention(x, layer)?;
            x = self.residual(attended, x, layer + 1 == c.layers);
            let fed = self.feed_forward(x)?;
            x = self.push(Op::Add, &[fed, x], c.width, "ffn_residual");
        }
        self.layer = None;
        let normed = self.norm("output_norm.weight", x, c.width, "output_norm")?;
        self.head(normed, table)
    }

    /// Adds the attention output to its input. After the last attention, only selected rows, whose
    /// logits are needed, continue.
    pub(super) fn residual(&mut self, attended: ValueId, x: ValueId, last: bool) -> ValueId {
        let width = self.config.width;
        let (attended, x) = if last {
            (
                self.push(Op::SelectRows, &[attended], width, "select_attention"),
                self.push(Op::SelectRows, &[x], width, "select_residual"),
            )
        } else {
            (attended, x)
        };
        self.push(Op::Add, &[attended, x], width, "attention_residual")
    }

    fn attention(&mut self, x: ValueId, layer: usize) -> Result<ValueId, ModelError> {
        let c = self.config;
        let (q_width, kv_width) = (c.heads * c.head_dim, c.kv_width());
        let normed = self.norm(&self.name("attn_norm.weight"), x, c.width, "attn_norm")?;
        let [mut q, mut k, v] = self.projections(normed)?;
        if c.arch.qk_norm {
            q = self.head_norm("attn_q_norm", q, q_width)?;
            k = self.head_norm("attn_k_norm", k, kv_width)?;
        }
        let (rope, window) = match c.layer_attention(layer) {
            LayerAttention::Full => (self.ropes.full, None),
            LayerAttention::Window(window) => (self.ropes.window, Some(window)),
        };
        let q = self.push(Op::Rope { heads: c.heads, rope }, &[q], q_width, "rope_q");
        let k = self.push(Op::Rope { heads: c.kv_heads, rope }, &[k], kv_width, "rope_k");
        let op = AttentionOp {
            layer,
            scale: c.score_scale(),
            window,
            mask: Mask::Causal,
            soft_cap: c.attention_cap,
        };
        let mixed = self.push(Op::Attention(op), &[q, k, v], q_width, "attention");
        let out = self.linear("attn_output", mixed, c.width)?;
        self.post_norm("post_attention_norm", out)
    }

    fn feed_forward(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let c = self.config;
        let normed = self.norm(&self.name("ffn_norm.weight"), x, c.width, "ffn_norm")?;
        let gate = self.linear("ffn_gate", normed, c.ffn_width)?;
        let up = self.linear("ffn_up", normed, c.ffn_width)?;
        let gated = Op::Gated(c.arch.activation);
        let inner = self.push(gated, &[gate, up], c.ffn_width, "ffn_gated");
        let out = self.linear("ffn_down", inner, c.width)?;
        self.post_norm("post_ffw_norm", out)
    }

    fn post_norm(&mut self, role: &'static str, x: ValueId) -> Result<ValueId, ModelError> {
        if !self.config.arch.post_norm {
            return Ok(x);
        }
        self.norm(&self.name(&format!("{role}.weight")), x, self.config.width, role)
    }

    fn head_norm(
        &mut self,
        role: &'static str,
        x: ValueId,
        width: usize,
    ) -> Result<ValueId, ModelError> {
        let name = self.name(&format!("{role}.weight"));
        let weight = self.vector(&name, self.config.head_dim)?;
        let op = Op::RmsNorm { weight, eps: self.config.norm_eps };
        Ok(self.push(op, &[x], width, role))
    }

    fn norm(
        &mut self,
        name: &str,
        x: ValueId,
        width: usize,
        role: &'static str,
    ) -> Result<ValueId, ModelError> {
        let weight = self.vector(name, width)?;
        Ok(self.push(Op::RmsNorm { weight, eps: self.config.norm_eps }, &[x], width, role))
    }

    fn head(&mut self, x: ValueId, table: WeightId) -> Result<(), ModelError> {
        let c = self.config;
        let vocab = self.graph.weights()[table.0].rows;
        let (weight, rows) = self.output_matrix(table)?;
        let bias = self.opt_part("output.bias", (1, rows), 0..vocab)?;
        let logits = self.push(Op::MatMul { weight, bias }, &[x], vocab, "output");
        if let Some(cap) = c.logit_cap {
            self.push(Op::SoftCap { cap }, &[logits], vocab, "logit_cap");
        }
        Ok(())
    }

    pub(super) fn push(
        &mut self,
        op: Op,
        inputs: &[ValueId],
        width: usize,
        role: &'static str,
    ) -> ValueId {
        self.graph.push(NewNode { op, inputs, width, layer: self.layer, role })
    }

    pub(super) fn name(&self, tensor: &str) -> String {
        match self.layer {
            Some(layer) => format!("blk.{layer}.{tensor}"),
            None => tensor.to_owned(),
        }
    }
}
