//! Hyper-parameters from a weight file's metadata.

use super::ModelError;
use super::architectures::{Architecture, Family};
use super::keys::Keys;
use crate::kv::{KvDtype, KvLayout};
use crate::op::{Activation, RopePairs, RopeScaling, Temperature, Xielu};
use crate::weights::Metadata;

/// Hyper-parameters of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Architecture.
    pub arch: Architecture,
    /// Name of the model, if the file has one.
    pub name: Option<String>,
    /// Transformer layers.
    pub layers: usize,
    /// Layers of the file behind these, which predict further tokens and are not used.
    pub predictors: usize,
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
    /// Context length of the training before it was stretched.
    pub original_context: usize,
    /// Form of the norms.
    pub norm: NormKind,
    /// Epsilon of the norms.
    pub norm_eps: f32,
    /// Activation of the feed-forward blocks of a decoder.
    pub activation: Activation,
    /// Parameters of each layer's xIELU; empty where there is none.
    pub xielu: Vec<Xielu>,
    /// Whether attention and the feed-forward block read the same, where a file says so.
    pub is_parallel: bool,
    /// Factor on embeddings.
    pub embedding_scale: f32,
    /// Factor on what each block adds to the hidden states.
    pub residual_scale: f32,
    /// Factor on the attention scores q·k.
    pub score_scale: f32,
    /// Factor on logits.
    pub logit_scale: f32,
    /// Which values of a head rotary embedding rotates together.
    pub rope_pairs: RopePairs,
    /// Whether each layer has rotary embedding.
    pub rotated: Vec<bool>,
    /// Values per head that rotary embedding rotates.
    pub rope_dims: usize,
    /// Rotary base of the layers with full attention.
    pub rope_base: f32,
    /// Rotary base of the sliding-window layers.
    pub rope_base_window: f32,
    /// Rotary scaling of the layers with full attention.
    pub rope_scaling: RopeScaling,
    /// Whether the rotary embedding of the sliding-window layers is scaled and has factors, as that of the others.
    pub window_rope_is_scaled: bool,
    /// Sliding window, in tokens, if any layer has one.
    pub window: Option<usize>,
    /// Whether each layer has the sliding window.
    pub windowed: Vec<bool>,
    /// Largest magnitude of queries, keys and values after their projections.
    pub qkv_limit: Option<f32>,
    /// Factor on queries by their position.
    pub temperature: Option<Temperature>,
    /// Linear biases of attention ([`AttentionOp::alibi`](crate::op::AttentionOp::alibi)).
    pub alibi: Option<f32>,
    /// Soft cap on attention scores.
    pub attention_cap: Option<f32>,
    /// Soft cap on logits.
    pub logit_cap: Option<f32>,
    /// How hidden states become the embedding of a text, by GGUF's number: 0 not at all, 1 mean,
    /// 2 first token, 3 last token. `None` if the file does not say.
    pub pooling_type: Option<u32>,
}

/// Form of the norms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// Root-mean-square norms.
    Rms,
    /// Layer norms, with biases where the file has them.
    Layer,
    /// Layer norms without weights and biases.
    LayerWithoutWeights,
}

impl NormKind {
    /// Key of their epsilon.
    fn epsilon(self) -> &'static str {
        match self {
            NormKind::Rms => "attention.layer_norm_rms_epsilon",
            NormKind::Layer | NormKind::LayerWithoutWeights => "attention.layer_norm_epsilon",
        }
    }
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
        let arch = Architecture::by_name(name)
            .ok_or_else(|| ModelError::UnknownArchitecture { found: name.to_owned() })?;
        let name = meta.opt_str("general.name")?.map(str::to_owned);
        let config = ModelConfig::of(arch, meta)?;
        Ok(ModelConfig { name, ..config })
    }

    /// Reads the hyper-parameters of an architecture.
    pub(super) fn of(arch: Architecture, meta: &Metadata) -> Result<ModelConfig, ModelError> {
        let keys = Keys::new(meta, arch.name());
        keys.refuse_experts()?;
        keys.check_direction(arch.is_encoder())?;
        let mut config = ModelConfig::plain(arch, &keys)?;
        if let Family::Decoder(family) = arch.family {
            family.settings(&keys, &mut config)?;
        }
        keys.refuse_others(&config)?;
        Ok(config)
    }

    /// The hyper-parameters of the plain transformer.
    fn plain(arch: Architecture, keys: &Keys<'_>) -> Result<ModelConfig, ModelError> {
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
        Ok(ModelConfig {
            arch,
            name: None,
            layers,
            predictors: 0,
            width,
            heads,
            kv_heads,
            kv_layers: layers,
            head_dim,
            ffn_width: keys.per_layer_count("feed_forward_length", None)?,
            context,
            original_context: keys
                .opt_count("rope.scaling.original_context_length")?
                .unwrap_or(context),
            norm: arch.norm(),
            norm_eps: keys.epsilon(arch.norm().epsilon())?,
            activation: Activation::Silu,
            xielu: Vec::new(),
            is_parallel: false,
            embedding_scale: 1.0,
            residual_scale: 1.0,
            score_scale: score_scale(head_dim),
            logit_scale: 1.0,
            rope_pairs: RopePairs::Adjacent,
            rotated: vec![true; layers],
            rope_dims,
            rope_base,
            rope_base_window: keys.rope_base("rope.freq_base_swa")?.unwrap_or(rope_base),
            rope_scaling: keys.rope_scaling(context)?,
            window_rope_is_scaled: true,
            window: None,
            windowed: vec![false; layers],
            qkv_limit: None,
            temperature: None,
            alibi: None,
            attention_cap: None,
            logit_cap: None,
            pooling_type: keys.opt_u32("pooling_type")?,
        })
    }

    /// Sets what all Gemmas have. The size with that many layers has another factor on scores.
    pub(super) fn as_gemma(&mut self, wide_scale_layers: usize) {
        self.activation = Activation::GeluTanh;
        self.rope_pairs = RopePairs::Halves;
        self.embedding_scale = (self.width as f32).sqrt();
        if self.layers == wide_scale_layers {
            self.score_scale = score_scale(self.width / self.heads);
        }
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

/// The factor on scores of heads with that many values.
fn score_scale(values: usize) -> f32 {
    1.0 / (values as f32).sqrt()
}
