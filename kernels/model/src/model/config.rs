//! Hyper-parameters from a weight file's metadata.

use super::ModelError;
use super::architecture::Architecture;
use super::experts::ExpertsConfig;
use super::family::Family;
use super::keys::Keys;
use super::layer::{LatentRanks, LayerHeads, RecurrentSizes, SinkLayers};
use super::norm_kind::NormKind;
use super::tensors::Tensors;
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
    /// The block of the file's tensors that each layer has. Layers may have the same one, each with keys and values of its own.
    pub blocks: Vec<usize>,
    /// Whether the last norm comes also before layers that begin with the first block again.
    pub is_normed_between: bool,
    /// Layers of the file behind these, which predict further tokens and are not used.
    pub predictors: usize,
    /// Hidden size: values per token between layers.
    pub width: usize,
    /// Heads of each layer's attention; a layer without key and value heads has none.
    pub heads: Vec<LayerHeads>,
    /// Ranks of latent attention, if the model has it.
    pub latent: Option<LatentRanks>,
    /// Values of the states of each layer, in the order of their ops; none for layers without one.
    pub states: Vec<Vec<usize>>,
    /// Sizes of the ops with states, if they are not those of gated convolutions.
    pub recurrent: Option<RecurrentSizes>,
    /// Least logarithm of the factors by which states fade by channel, if they are bounded.
    pub least_decay: Option<f32>,
    /// Intermediate size of each layer's feed-forward block; 0 in a layer without one.
    pub ffn_widths: Vec<usize>,
    /// Mixtures of experts, if layers may have them in place of a feed-forward block.
    pub experts: Option<ExpertsConfig>,
    /// Values per token of the embedding that each layer has of its own; 0 if layers have none.
    pub layer_input_width: usize,
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
    /// How many standard deviations above their mean the values of each layer's gate must be to count, if the gate is sparse; empty
    /// where no layer's is.
    pub sparse_gates: Vec<Option<f32>>,
    /// What is the most that the gate of a feed-forward block or shared expert makes, and the largest magnitude of what it gates, by
    /// blocks of the file; empty where nothing is bounded.
    pub gate_limits: Vec<Option<f32>>,
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
    /// Rotary base of the layers with full attention.
    pub rope_base: f32,
    /// Rotary base of the sliding-window layers.
    pub rope_base_window: f32,
    /// Rotary scaling of the layers with full attention.
    pub rope_scaling: RopeScaling,
    /// Pairs for which the file may have factors, if those are more than rotate in layers that use them: these use the first.
    pub rope_factors: Option<usize>,
    /// Whether the rotary embedding of the sliding-window layers is scaled and has factors, as that of the others.
    pub window_rope_is_scaled: bool,
    /// Sliding window, in tokens, if any layer has one.
    pub window: Option<usize>,
    /// Whether each layer has the sliding window.
    pub windowed: Vec<bool>,
    /// Whether the window does not slide: a row sees the positions from the last multiple of its length on.
    pub is_window_fixed: bool,
    /// Largest magnitude of queries, keys and values after their projections.
    pub qkv_limit: Option<f32>,
    /// Factor on queries by their position, in layers that rotate.
    pub temperature: Option<Temperature>,
    /// The same in layers that do not rotate.
    pub temperature_unrotated: Option<Temperature>,
    /// Linear biases of attention ([`AttentionOp::alibi`](crate::op::AttentionOp::alibi)).
    pub alibi: Option<f32>,
    /// Which layers' attention has sinks ([`AttentionOp::sinks`](crate::op::AttentionOp::sinks)).
    pub sinks: SinkLayers,
    /// Factor on what attention adds to the hidden states.
    pub attention_scale: f32,
    /// Soft cap on attention scores.
    pub attention_cap: Option<f32>,
    /// Soft cap on logits.
    pub logit_cap: Option<f32>,
    /// How hidden states become the embedding of a text, by GGUF's number: 0 not at all, 1 mean,
    /// 2 first token, 3 last token, 4 a score by the head. `None` if the file does not say.
    pub pooling_type: Option<u32>,
    /// Which hidden states the head of a reranker reads, by the numbers of `pooling_type`, if the file says so.
    pub rank_pooling_type: Option<u32>,
    /// Names of what the head of a reranker makes, if the file says them.
    pub rank_labels: Vec<String>,
    /// The token after each part of a text, if parts differ in the type of their tokens.
    pub separator: Option<u32>,
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
        ModelConfig::read(arch, &Keys::new(meta, &arch))
    }

    /// Hyper-parameters of the first layer behind those of the model that predicts a further token, as a model of that layer alone.
    ///
    /// # Errors
    /// [`ModelError::NoPredictor`] if there is none, and otherwise as [`from_metadata`](ModelConfig::from_metadata).
    pub(super) fn of_predictor(
        meta: &Metadata,
        tensors: &dyn Tensors,
    ) -> Result<ModelConfig, ModelError> {
        let ModelConfig { arch, name, layers, predictors, .. } = ModelConfig::from_metadata(meta)?;
        // Some files state a predictor that they do not have.
        let is_there = || tensors.find(&format!("blk.{layers}.nextn.eh_proj.weight")).is_some();
        if predictors == 0 || !arch.has_predictors() || !is_there() {
            return Err(ModelError::NoPredictor { arch: arch.name() });
        }
        let mut config = ModelConfig::read(arch, &Keys::new(meta, &arch).with_predictors())?;
        config.set_blocks(vec![layers]);
        Ok(ModelConfig { name, ..config })
    }

    fn read(arch: Architecture, keys: &Keys<'_>) -> Result<ModelConfig, ModelError> {
        keys.check_direction(arch.is_encoder())?;
        let mut config = ModelConfig::plain(arch, keys)?;
        match arch.family {
            Family::Decoder(family) => family.settings(keys, &mut config)?,
            Family::Encoder(family) => family.settings(keys, &mut config)?,
        }
        keys.check_experts(&config)?;
        keys.refuse_others(&config)?;
        keys.check_mixers(&config)?;
        Ok(config)
    }

    /// The hyper-parameters of the plain transformer.
    fn plain(arch: Architecture, keys: &Keys<'_>) -> Result<ModelConfig, ModelError> {
        let layers = keys.count("block_count", 4096)?;
        let width = keys.count("embedding_length", 1 << 20)?;
        let heads = keys.heads(layers, width)?;
        let rope_base = keys.rope_base("rope.freq_base")?.unwrap_or(10_000.0);
        let context = keys.count("context_length", 1 << 30)?;
        let norm = match arch.may_have_rms_norms() && keys.has(NormKind::Rms.epsilon())? {
            true => NormKind::Rms,
            false => arch.norm(),
        };
        Ok(ModelConfig {
            arch,
            name: None,
            layers,
            blocks: (0..layers).collect(),
            is_normed_between: false,
            predictors: 0,
            width,
            score_scale: score_scale(heads[0].kv.key_dim),
            heads,
            latent: None,
            states: vec![Vec::new(); layers],
            recurrent: None,
            least_decay: None,
            experts: None,
            ffn_widths: keys.ffn_widths(layers)?,
            layer_input_width: 0,
            context,
            original_context: keys
                .opt_count("rope.scaling.original_context_length")?
                .unwrap_or(context),
            norm,
            norm_eps: keys.epsilon(norm.epsilon())?,
            activation: Activation::Silu,
            xielu: Vec::new(),
            sparse_gates: Vec::new(),
            gate_limits: Vec::new(),
            is_parallel: false,
            embedding_scale: 1.0,
            residual_scale: 1.0,
            logit_scale: 1.0,
            rope_pairs: RopePairs::Adjacent,
            rotated: vec![true; layers],
            rope_base,
            rope_base_window: keys.rope_base("rope.freq_base_swa")?.unwrap_or(rope_base),
            rope_scaling: keys.rope_scaling(context)?,
            rope_factors: None,
            window_rope_is_scaled: true,
            window: None,
            windowed: vec![false; layers],
            is_window_fixed: false,
            qkv_limit: None,
            temperature: None,
            temperature_unrotated: None,
            alibi: None,
            sinks: SinkLayers::None,
            attention_scale: 1.0,
            attention_cap: None,
            logit_cap: None,
            // llama.cpp writes −1 for none.
            pooling_type: keys.opt_u32("pooling_type")?.filter(|number| *number != u32::MAX),
            rank_pooling_type: keys.opt_u32("classifier.pooling_type")?,
            rank_labels: keys.strings("classifier.output_labels")?,
            separator: None,
        })
    }

    /// Sets what all Gemmas have. The size with that many layers has another factor on scores.
    pub(super) fn as_gemma(&mut self, wide_scale_layers: usize) {
        self.activation = Activation::GeluTanh;
        self.rope_pairs = RopePairs::Halves;
        self.embedding_scale = (self.width as f32).sqrt();
        if self.layers == wide_scale_layers {
            self.score_scale = score_scale(self.width / self.heads[0].count);
        }
    }
}

/// The factor on scores of heads with that many values.
pub(super) fn score_scale(values: usize) -> f32 {
    1.0 / (values as f32).sqrt()
}
