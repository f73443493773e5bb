//! Gemma 4: Gemma 3 with full layers whose heads are larger than those of windowed ones, normalised values, last layers that
//! read the keys and values of earlier ones, and embeddings of each layer's own; in one size experts beside the dense blocks.

use super::super::build::{Builder, LayerForm, Norms};
use super::super::experts::ExpertsConfig;
use super::super::keys::{ExpertsForm, Keys};
use super::super::{LayerHeads, ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::kv::KvHeads;
use crate::op::{Activation, ExpertForm, Op};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("gemma4", &Gemma4);

struct Gemma4;

impl Decoder for Gemma4 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.as_gemma(0);
        config.score_scale = 1.0;
        let KvHeads { key_dim, value_dim, .. } = config.heads[0].kv;
        keys.check("attention.value_length", value_dim, value_dim == key_dim, || {
            format!("it must equal the key length, {key_dim}")
        })?;
        config.logit_cap = keys.cap("final_logit_softcapping", None)?;
        keys.listed_windows(config)?;
        config.window_rope_is_scaled = false;
        config.layer_input_width = keys.opt_count("embedding_length_per_layer_input")?.unwrap_or(0);
        window_heads(keys, config)?;
        keys.share_kv(config, 0)?;
        let form = ExpertForm::Gated(Activation::GeluTanh);
        keys.experts(config, ExpertsForm { form, ..ExpertsForm::PLAIN })
    }

    fn embedded(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.add_layer_inputs(x)?;
        Ok(x)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let normed = b.norm("attn_norm", x)?;
        let attended = match b.has("attn_qkv.weight") || b.has("attn_v.weight") {
            true => b.normed_attention(normed)?,
            false => b.normed_attention_of_keys(normed)?,
        };
        let form = LayerForm { norms: Norms::BOTH, ..LayerForm::PLAIN };
        let x = match b.experts() {
            Some(experts) => b.dense_and_experts([x, attended], experts)?,
            None => b.after_attention([x, normed, attended], form)?,
        };
        let x = b.add_layer_input(x)?;
        b.scaled_by("layer_output_scale", x)
    }
}

/// Sets the heads of the layers with a window.
fn window_heads(keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
    const KEYS: &str = "attention.key_length_swa";
    const VALUES: &str = "attention.value_length_swa";
    let full = config.heads[0];
    let dim = keys.opt_count(KEYS)?.unwrap_or(full.kv.key_dim);
    keys.check(KEYS, dim, dim <= 65_536, || "a head has at most 65536 values".to_owned())?;
    let values = keys.opt_count(VALUES)?.unwrap_or(dim);
    keys.check(VALUES, values, values == dim, || format!("it must equal the key length, {dim}"))?;
    let rope_dims = keys.rope_dims("rope.dimension_count_swa", dim, full.rope_dims)?;
    for (heads, windowed) in config.heads.iter_mut().zip(&config.windowed) {
        if *windowed {
            let kv = KvHeads::new(heads.kv.count, dim);
            *heads = LayerHeads { kv, rope_dims, ..*heads };
        }
    }
    Ok(())
}

impl Builder<'_> {
    /// The rest of a layer that has experts: adds attention to the layer's input, and then the sum of a dense block and of experts, each
    /// with norms of its own. The router has another one.
    fn dense_and_experts(
        &mut self,
        [x, attended]: [ValueId; 2],
        experts: &ExpertsConfig,
    ) -> Result<ValueId, ModelError> {
        let (width, eps) = (self.config.width, self.config.norm_eps);
        let attended = self.norm("post_attention_norm", attended)?;
        let sum = self.add_attended(attended, x);
        let read = self.norm("ffn_norm", sum)?;
        let dense = self.dense_block(read, &LayerForm::PLAIN)?;
        let dense = self.norm("post_ffw_norm_1", dense)?;
        let weight = Some(self.vector(&self.name("ffn_gate_inp.scale"), width)?);
        let norm = Op::RmsNorm { weight, group: width, eps };
        let read = self.push(norm, &[sum], width, "ffn_router_norm");
        let weight = self.matrix(&self.name("ffn_gate_inp.weight"), experts.count, width)?;
        let product = Op::MatMul { weight, bias: None };
        let logits = self.push(product, &[read], experts.count, "ffn_gate_inp");
        let scale = Op::Scale { factor: 1.0 / (width as f32).sqrt() };
        let logits = self.push(scale, &[logits], experts.count, "ffn_router_scale");
        let route = self.route(logits, experts)?;
        let read = self.norm("pre_ffw_norm_2", sum)?;
        let mixed = self.mixed_experts([read, route], experts)?;
        let mixed = self.norm("post_ffw_norm_2", mixed)?;
        let both = self.push(Op::Add, &[dense, mixed], width, "ffn_both");
        let fed = self.norm("post_ffw_norm", both)?;
        Ok(self.add_fed(fed, sum))
    }

    /// `x` times the only value of a vector of the current layer, if the file has it.
    fn scaled_by(&mut self, role: &'static str, x: ValueId) -> Result<ValueId, ModelError> {
        let weight = self.opt_vector(&self.name(&format!("{role}.weight")), 1)?;
        let width = self.config.width;
        Ok(weight.map_or(x, |weight| self.push(Op::ScaleBy { weight }, &[x], width, role)))
    }
}
