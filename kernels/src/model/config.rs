//! Hyper-parameters from a weight file's metadata.

use super::ModelError;
use super::keys::Keys;
use super::spec::{self, ArchSpec};
use crate::kv::{KvDtype, KvLayout};
use crate::op::RopeScaling;
use crate::weights::Metadata;

/// Hyper-parameters of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Row of the architecture table.
    pub arch: ArchSpec,
    /// Name of the model, if the file has one.
    pub name: Option<String>,
    /// Transformer layers.
    pub layers: usize,
    /// Hidden size: values per token between layers.
    pub width: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads (GQA: fewer than `heads`; MQA: 1).
    pub kv_heads: usize,
    /// Layers with keys and values of their own: all, unless layers share them
    /// ([`Model::share_kv`](super::Model::share_kv)).
    pub kv_layers: usize,
    /// Values per head.
    pub head_dim: usize,
    /// Intermediate size of the feed-forward blocks.
    pub ffn_width: usize,
    /// Context length of the training, in tokens.
    pub context: usize,
    /// Epsilon of the norms.
    pub norm_eps: f32,
    /// Values per head that rotary embedding rotates.
    pub rope_dims: usize,
    /// Rotary base of the layers with full attention.
    pub rope_base: f32,
    /// Rotary base of the sliding-window layers.
    pub rope_base_window: f32,
    /// Rotary scaling of the layers with full attention.
    pub rope_scaling: RopeScaling,
    /// Sliding window, in tokens, if any layer has one.
    pub window: Option<usize>,
    /// Whether each layer has the sliding window.
    pub windowed: Vec<bool>,
    /// Soft cap on attention scores.
    pub attention_cap: Option<f32>,
    /// Soft cap on logits.
    pub logit_cap: Option<f32>,
    /// How hidden states become the embedding of a text, by GGUF's number: 0 not at all, 1 mean,
    /// 2 first token, 3 last token. `None` if the file does not say.
    pub pooling_type: Option<u32>,
}

/// Attention of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerAttention {
    /// Over every earlier position.
    Full,
    /// Over the last positions, as many as this number.
    Window(usize),
}

impl ModelConfig {
    /// Reads the hyper-parameters of `general.architecture`.
    ///
    /// # Errors
    /// The architecture is not supported, a key is missing, or a value is invalid.
    pub fn from_metadata(meta: &Metadata) -> Result<ModelConfig, ModelError> {
        let name = meta.str("general.architecture")?;
        let arch = spec::find(name)
            .ok_or_else(|| ModelError::UnknownArchitecture { found: name.to_owned() })?;
        let keys = Keys { meta, arch: arch.name };
        keys.refuse_experts()?;
        keys.check_direction(arch.encoder)?;
        let layers = keys.count("block_count", 4096)?;
        let width = keys.count("embedding_length", 1 << 20)?;
        let heads = keys.per_layer_count("attention.head_count", None)?;
        let kv_heads = keys.per_layer_count("attention.head_count_kv", Some(heads))?;
        keys.check("attention.head_count_kv", kv_heads, heads.is_multiple_of(kv_heads), || {
            format!("it must divide the {heads} query heads")
        })?;
        let head_dim = keys.head_dim(width, heads)?;
        let rope_dims = keys.opt_count("rope.dimension_count")?.unwrap_or(head_dim);
        let rope_fits = rope_dims <= head_dim && rope_dims.is_multiple_of(2);
        keys.check("rope.dimension_count", rope_dims, rope_fits, || {
            format!("it must be even and at most the head's {head_dim} values")
        })?;
        let rope_base = keys.rope_base("rope.freq_base")?.unwrap_or(10_000.0);
        let context = keys.count("context_length", 1 << 30)?;
        let config = ModelConfig {
            arch,
            name: meta.opt_str("general.name")?.map(str::to_owned),
            layers,
            width,
            heads,
            kv_heads,
            kv_layers: layers,
            head_dim,
            ffn_width: keys.per_layer_count("feed_forward_length", None)?,
            context,
            norm_eps: keys.epsilon(match arch.encoder {
                true => "attention.layer_norm_epsilon",
                false => "attention.layer_norm_rms_epsilon",
            })?,
            rope_dims,
            rope_base,
            rope_base_window: keys
                .rope_base("rope.freq_base_swa")?
                .or(arch.window_rope_base)
                .unwrap_or(rope_base),
            rope_scaling: keys.rope_scaling(context)?,
            window: keys.window(arch, context)?.or(arch.window_default),
            windowed: keys.windowed(arch.window_period, layers)?,
            attention_cap: keys.cap("attn_logit_softcapping", arch.soft_caps.attention)?,
            logit_cap: keys.cap("final_logit_softcapping", arch.soft_caps.logits)?,
            pooling_type: meta.opt_u32(&keys.key("pooling_type"))?,
        };
        keys.refuse_others(&config)?;
        Ok(config)
    }

    /// Attention of a layer.
    pub fn layer_attention(&self, layer: usize) -> LayerAttention {
        match self.window {
            Some(window) if self.windowed.get(layer) == Some(&true) => {
                LayerAttention::Window(window)
            }
            _ => LayerAttention::Full,
        }
    }

    /// Factor on the attention scores q·k.
    pub fn score_scale(&self) -> f32 {
        let dim = match self.arch.wide_scale_layers {
            Some(layers) if layers == self.layers => self.width / self.heads,
            _ => self.head_dim,
        };
        1.0 / (dim as f32).sqrt()
    }

    /// Shape of the model's KV pages.
    pub fn kv_layout(&self) -> KvLayout {
        KvLayout {
            layers: self.kv_layers,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            page_rows: KvLayout::PAGE_ROWS,
            dtype: KvDtype::default(),
        }
    }

    /// Values of K, or of V, per token and layer.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }
}
