//! Builds the op graph from hyper-parameters.

use std::collections::HashSet;

use super::tensors::Tensors;
use super::{LayerAttention, ModelConfig, ModelError};
use crate::graph::{Graph, NewNode, ValueId, WeightId, WeightSpec};
use crate::mask::Mask;
use crate::op::{AttentionOp, Op, RopeScaling, RopeSpec};

/// Builds the graph and checks every tensor against it.
pub(super) fn build(config: &ModelConfig, tensors: &dyn Tensors) -> Result<Graph, ModelError> {
    let mut builder = Builder {
        config,
        tensors,
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
        self.ropes.window = if c.arch.window_rope_base.is_none() {
            self.ropes.full
        } else {
            self.graph.add_rope(RopeSpec {
                base: c.rope_base_window,
                dims: c.rope_dims,
                pairs: c.arch.pairs,
                scaling: RopeScaling::None,
                factors: None,
            })
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
        let mut q = self.linear("attn_q", normed, q_width, c.arch.qkv_bias)?;
        let mut k = self.linear("attn_k", normed, kv_width, c.arch.qkv_bias)?;
        let v = self.linear("attn_v", normed, kv_width, c.arch.qkv_bias)?;
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
        let out = self.linear("attn_output", mixed, c.width, false)?;
        self.post_norm("post_attention_norm", out)
    }

    fn feed_forward(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let c = self.config;
        let normed = self.norm(&self.name("ffn_norm.weight"), x, c.width, "ffn_norm")?;
        let gate = self.linear("ffn_gate", normed, c.ffn_width, false)?;
        let up = self.linear("ffn_up", normed, c.ffn_width, false)?;
        let gated = Op::Gated(c.arch.activation);
        let inner = self.push(gated, &[gate, up], c.ffn_width, "ffn_gated");
        let out = self.linear("ffn_down", inner, c.width, false)?;
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

    /// A matmul of the current layer, with a bias if the file has one.
    pub(super) fn linear(
        &mut self,
        role: &'static str,
        x: ValueId,
        width: usize,
        bias_required: bool,
    ) -> Result<ValueId, ModelError> {
        let cols = self.graph.value(x).width;
        let weight = self.matrix(&self.name(&format!("{role}.weight")), width, cols)?;
        let bias_name = self.name(&format!("{role}.bias"));
        let bias = if bias_required {
            Some(self.vector(&bias_name, width)?)
        } else {
            self.opt_vector(&bias_name, width)?
        };
        Ok(self.push(Op::MatMul { weight, bias }, &[x], width, role))
    }

    pub(super) fn embedding(&mut self) -> Result<WeightId, ModelError> {
        let name = "token_embd.weight";
        let table = self.tensors.find(name).ok_or_else(|| self.missing(name))?;
        self.matrix(name, table.rows, self.config.width)
    }

    fn head(&mut self, x: ValueId, table: WeightId) -> Result<(), ModelError> {
        let c = self.config;
        let vocab = self.graph.weights()[table.0].rows;
        let weight = match self.tensors.find("output.weight") {
            Some(_) => self.matrix("output.weight", vocab, c.width)?,
            None => table,
        };
        let bias = self.opt_vector("output.bias", vocab)?;
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

    fn missing(&self, name: &str) -> ModelError {
        ModelError::MissingTensor { name: name.to_owned(), arch: self.config.arch.name }
    }

    fn opt_vector(&mut self, name: &str, len: usize) -> Result<Option<WeightId>, ModelError> {
        if self.tensors.find(name).is_none() {
            return Ok(None);
        }
        self.vector(name, len).map(Some)
    }

    pub(super) fn vector(&mut self, name: &str, len: usize) -> Result<WeightId, ModelError> {
        self.matrix(name, 1, len)
    }

    pub(super) fn matrix(
        &mut self,
        name: &str,
        rows: usize,
        cols: usize,
    ) -> Result<WeightId, ModelError> {
        let found = self.tensors.find(name).ok_or_else(|| self.missing(name))?;
        if (found.rows, found.cols) != (rows, cols) {
            return Err(ModelError::TensorShape {
                name: name.to_owned(),
                found: format!("[{}, {}]", found.rows, found.cols),
                expected: format!("[{rows}, {cols}]"),
            });
        }
        self.used.insert(name.to_owned());
        let dtype = found.dtype;
        Ok(self.graph.add_weight(WeightSpec { name: name.to_owned(), rows, cols, dtype }))
    }

    fn check_unused(&self) -> Result<(), ModelError> {
        let names = self.tensors.names();
        let mut unused = names.into_iter().filter(|name| !self.used.contains(*name));
        let Some(first) = unused.next() else { return Ok(()) };
        Err(ModelError::UnusedTensor {
            name: first.to_owned(),
            arch: self.config.arch.name,
            count: 1 + unused.count(),
        })
    }
}
