//! Gemma 4: Gemma 3 with full layers whose heads are larger than those of windowed ones, normalised values, last layers that
//! read the keys and values of earlier ones, and embeddings of each layer's own.

use super::super::build::{Builder, LayerForm, Norms, QkNorm};
use super::super::keys::{Keys, Windows};
use super::super::{LayerHeads, ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::kv::KvHeads;
use crate::op::Op;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("gemma4", &Gemma4);

struct Gemma4;

const PATTERN: &str = "attention.sliding_window_pattern";
const SHARED: &str = "attention.shared_kv_layers";

impl Decoder for Gemma4 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.as_gemma(0);
        config.score_scale = 1.0;
        let KvHeads { key_dim, value_dim, .. } = config.heads[0].kv;
        keys.check("attention.value_length", value_dim, value_dim == key_dim, || {
            format!("it must equal the key length, {key_dim}")
        })?;
        config.logit_cap = keys.cap("final_logit_softcapping", None)?;
        let has_pattern = keys.meta.get(&keys.key(PATTERN)).is_some();
        keys.check(PATTERN, "missing", has_pattern, || {
            "it must say which layers have a window".to_owned()
        })?;
        keys.count("attention.sliding_window", 1 << 30)?;
        keys.windows(config, Windows { period: config.layers, default: None })?;
        config.window_rope_is_scaled = false;
        config.layer_input_width = keys.opt_count("embedding_length_per_layer_input")?.unwrap_or(0);
        window_heads(keys, config)?;
        share_kv(keys, config)
    }

    fn embedded(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.add_layer_inputs(x)?;
        Ok(x)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let normed = b.norm("attn_norm", x)?;
        let attended = b.normed_attention(normed)?;
        let form = LayerForm { norms: Norms::BOTH, ..LayerForm::PLAIN };
        let x = b.after_attention([x, normed, attended], form)?;
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

/// Makes the last layers read the keys and values of the last layer of their kind that has some, which is the last one or the
/// one before it.
fn share_kv(keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
    let shared = keys.opt_count(SHARED)?.unwrap_or(0);
    let (layers, own) = (config.layers, config.layers.saturating_sub(shared));
    for layer in own..layers {
        let back = if config.windowed[layer] { 2 } else { 1 };
        let owner = own.checked_sub(back).filter(|owner| {
            let of = |layer: usize| (config.windowed[layer], config.heads[layer].kv);
            of(*owner) == of(layer)
        });
        keys.check(SHARED, shared, owner.is_some(), || {
            format!("layer {layer} would have no earlier layer with keys and values like its own")
        })?;
        config.heads[layer].kv_of = owner.unwrap_or(layer);
    }
    Ok(())
}

impl Builder<'_> {
    /// Attention of the current layer with normalised queries, keys and values. A layer without keys of its own has only
    /// queries; without a matrix for values, the projected keys are the values.
    fn normed_attention(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        if !self.config.has_kv(self.layer_number()) {
            for tensor in ["attn_k.weight", "attn_v.weight", "attn_k_norm.weight"] {
                self.leave_unread(tensor);
            }
            let q = self.queries(x)?;
            let q = self.qk_norm("attn_q_norm", q, QkNorm::Heads)?;
            let q = self.rotated("rope_q", q, self.heads().count);
            return self.mixed(&[q], None);
        }
        let LayerHeads { count, kv, .. } = self.heads();
        let has_values = self.has("attn_qkv.weight") || self.has("attn_v.weight");
        let [q, k, v] = match has_values {
            true => self.projections(x)?,
            false => {
                let (q, k) = (self.queries(x)?, self.linear("attn_k", x, kv.key_width())?);
                [q, k, k]
            }
        };
        let q = self.qk_norm("attn_q_norm", q, QkNorm::Heads)?;
        let norm = Op::RmsNorm { weight: None, group: kv.value_dim, eps: self.config.norm_eps };
        let v = self.push(norm, &[v], kv.value_width(), "attn_v_norm");
        let k = self.qk_norm("attn_k_norm", k, QkNorm::Heads)?;
        let q = self.rotated("rope_q", q, count);
        let k = self.rotated("rope_k", k, kv.count);
        self.mixed(&[q, k, v], None)
    }

    /// `x` times the only value of a vector of the current layer, if the file has it.
    fn scaled_by(&mut self, role: &'static str, x: ValueId) -> Result<ValueId, ModelError> {
        let weight = self.opt_vector(&self.name(&format!("{role}.weight")), 1)?;
        let width = self.config.width;
        Ok(weight.map_or(x, |weight| self.push(Op::ScaleBy { weight }, &[x], width, role)))
    }
}
