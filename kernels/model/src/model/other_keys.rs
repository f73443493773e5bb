//! Keys of other architectures, and of variants of the supported ones, that would change results. No op here does what
//! they say, so a file may have them only with values that change nothing, as some programs write all keys.

use super::keys::Keys;
use super::{ModelConfig, ModelError};
use crate::op::{Activation, RopeScaling};
use crate::weights::Value;

/// Keys that change nothing when they are 0, false, or a list of those. A name that ends in a dot stands for all keys
/// that begin so.
const OFF: [&str; 48] = [
    "activation.",
    "adapters.",
    "attention.clamp_kqv",
    "attention.compress_ratios",
    "attention.decay_lora_rank",
    "attention.gate_lora_rank",
    "attention.iclr_lora_rank",
    "attention.indexer.",
    "attention.key_length_mla",
    "attention.kv_lora_rank",
    "attention.max_alibi_bias",
    "attention.output_group_count",
    "attention.output_lora_rank",
    "attention.q_lora_rank",
    "attention.recurrent_layers",
    "attention.relative_buckets_count",
    "attention.shared_kv_layers",
    "attention.temperature_length",
    "attention.temperature_scale",
    "attention.value_length_mla",
    "attention.value_residual_mix_lora_rank",
    "attn_res.",
    "convnext.",
    "decision.",
    "deepstack_mapping",
    "dense_2_feat_out",
    "dense_3_feat_out",
    "embedding_length_per_layer_input",
    "full_attention_interval",
    "hrm.",
    "hyper_connection.",
    "kda.",
    "leading_dense_block_count",
    "n_deepstack_layers",
    "nextn_predict_layers",
    "num_loops",
    "ple.",
    "posnet.",
    "rescale_every_n_layers",
    "rope.dimension_sections",
    "rope.scaling.yarn_log_multiplier",
    "ssm.",
    "swiglu_clamp_exp",
    "swiglu_clamp_shexp",
    "swin_norm",
    "token_shift_count",
    "use_parallel_residual",
    "wkv.",
];

/// Factors, which change nothing when they are 1. Some programs write 0 where there is none.
const FACTORS: [&str; 6] = [
    "attention.output_scale",
    "attention.value_scale",
    "embedding_scale",
    "logit_scale",
    "residual_scale",
    "rope.scaling.alpha",
];

/// Keys of which an architecture has at most one.
const EXCLUSIVE: [&str; 2] = ["ssm.state_size", "wkv.head_size"];

impl Keys<'_> {
    /// Refuses what would change results and is not computed.
    ///
    /// A file with keys of architectures that exclude each other has all keys there are, as tests of other programs write them.
    /// Those that its own architecture does not read mean nothing.
    pub(super) fn refuse_others(&self, config: &ModelConfig) -> Result<(), ModelError> {
        let is_there = |name: &&str| self.meta.get(&format!("{}.{name}", self.arch)).is_some();
        if EXCLUSIVE.iter().all(is_there) {
            return Ok(());
        }
        for (key, value) in self.meta.iter() {
            let Some(name) = key.strip_prefix(self.arch).and_then(|rest| rest.strip_prefix('.'))
            else {
                continue;
            };
            if self.is_read(name) {
                continue;
            }
            if let Some(expected) = self.changes(name, value, config) {
                let (key, found) = (key.to_owned(), value.to_string());
                return Err(ModelError::BadValue { key, found, expected });
            }
        }
        Ok(())
    }

    /// What the value of a key must be to change nothing, if it changes something.
    fn changes(&self, name: &str, value: &Value, config: &ModelConfig) -> Option<String> {
        let is_off = |off: &&str| match off.ends_with('.') {
            true => name.starts_with(*off),
            false => name == *off,
        };
        if OFF.iter().any(is_off) {
            let is_on = !numbers(value).iter().all(|number| *number == 0.0);
            return is_on.then(|| "variants of this architecture with it are not supported".into());
        }
        let only = |accepted: &[f64]| {
            let found = numbers(value);
            let good = found.iter().all(|found| accepted.iter().any(|good| near(*found, *good)));
            let all: Vec<String> = accepted.iter().map(f64::to_string).collect();
            (!good).then(|| format!("only {} is supported", all.join(" or ")))
        };
        if FACTORS.contains(&name) {
            return only(&[1.0, 0.0]);
        }
        let (heads, context) = (config.heads[0], config.context as f64);
        match name {
            "attention.scale" => only(&[config.score_scale.into(), 0.0]),
            "attention.key_length_swa" => only(&[heads.kv.key_dim as f64, 0.0]),
            "attention.value_length_swa" => only(&[heads.kv.value_dim as f64, 0.0]),
            "rope.dimension_count_swa" => only(&[heads.rope_dims as f64, 0.0]),
            "embedding_length_out" => only(&[config.width as f64, 0.0]),
            "attention.rope_pattern" => only(&[1.0]),
            "attention.sliding_window" => {
                let is_seen = numbers(value).iter().any(|window| (1.0..context).contains(window));
                is_seen.then(|| "layers of this architecture have no sliding window".to_owned())
            }
            // Files state the factor that YaRN has anyway.
            "rope.scaling.yarn_attn_factor" => match config.rope_scaling {
                RopeScaling::Yarn { factor, .. } => {
                    only(&[1.0 + 0.1 * f64::from(factor).ln(), 1.0, 0.0])
                }
                RopeScaling::None | RopeScaling::Linear { .. } | RopeScaling::LongRope { .. } => {
                    only(&[1.0, 0.0])
                }
            },
            "rope.scaling.yarn_ext_factor" => {
                only(&[if is_yarn(config) { 1.0 } else { 0.0 }, -1.0])
            }
            "hidden_activation" => other_activation(value, config),
            _ => None,
        }
    }
}

fn is_yarn(config: &ModelConfig) -> bool {
    matches!(config.rope_scaling, RopeScaling::Yarn { .. })
}

/// The names of the activation, unless the value is one of them.
fn other_activation(value: &Value, config: &ModelConfig) -> Option<String> {
    let names: &[&str] = match (config.arch.is_encoder(), config.activation) {
        (true, _) => &["gelu"],
        (false, Activation::Silu) => &["silu", "swish"],
        (false, Activation::GeluTanh) => &["gelu_pytorch_tanh", "gelu"],
        (false, Activation::Sigmoid) => &["sigmoid"],
    };
    let found = value.to_string();
    (!names.contains(&&*found)).then(|| format!("only {} is supported", names.join(" or ")))
}

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= 1e-6 * wanted.abs()
}

/// The numbers of a value, with true as 1; a text counts as 1 unless it is empty.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(array) => array.values().flat_map(|value| numbers(&value)).collect(),
        Value::Bool(value) => vec![f64::from(u8::from(*value))],
        Value::String(text) => vec![f64::from(u8::from(!text.as_bytes().is_empty()))],
        other => vec![other.number().unwrap_or(0.0)],
    }
}
