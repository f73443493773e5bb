//! Table of supported architectures.

use crate::op::{Activation, RopePairs};

/// Differences of an architecture from the plain pre-norm transformer with gated feed-forward
/// blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArchSpec {
    /// Value of `general.architecture`.
    pub name: &'static str,
    /// Layout of rotary pairs in its weight files.
    pub pairs: RopePairs,
    /// Feed-forward activation.
    pub activation: Activation,
    /// Published models have biases of Q, K and V. A file may lack them, and files of other architectures may have
    /// them.
    pub qkv_bias: bool,
    /// Q and K heads are normalised before the rotation.
    pub qk_norm: bool,
    /// Attention and feed-forward outputs are normalised before the residual addition.
    pub post_norm: bool,
    /// Embeddings are multiplied by √width.
    pub scaled_embedding: bool,
    /// Period n of layers with full attention, unless the file says otherwise; all others have a sliding window.
    /// 0: no windows.
    pub window_period: usize,
    /// Default sliding window, in tokens, if the file has no key for it.
    pub window_default: Option<usize>,
    /// Rotary base of the sliding-window layers; `None` if all layers share one base.
    pub window_rope_base: Option<f32>,
    /// Default soft caps on scores and logits, used if the file has none.
    pub soft_caps: SoftCaps,
    /// An encoder as BERT: rows see all rows of their sequence, positions come from a table, norms are layer
    /// norms after the residual additions, the feed-forward blocks have no gate, and there is no output
    /// matrix. The other fields do not apply.
    pub encoder: bool,
    /// Layer count of the model size whose score scale is 1/√(width/heads).
    pub wide_scale_layers: Option<usize>,
}

/// Default soft caps of an architecture; `None` if a cap is off unless the file sets it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoftCaps {
    /// On attention scores.
    pub attention: Option<f32>,
    /// On logits.
    pub logits: Option<f32>,
}

const PLAIN: ArchSpec = ArchSpec {
    name: "llama",
    pairs: RopePairs::Adjacent,
    activation: Activation::Silu,
    qkv_bias: false,
    qk_norm: false,
    post_norm: false,
    scaled_embedding: false,
    window_period: 0,
    window_default: None,
    window_rope_base: None,
    soft_caps: SoftCaps { attention: None, logits: None },
    encoder: false,
    wide_scale_layers: None,
};

/// Llama 2 and 3, SmolLM2, Mistral, and all other models whose files say `llama`.
const LLAMA: ArchSpec = PLAIN;

const INTERNLM2: ArchSpec = ArchSpec { name: "internlm2", ..PLAIN };

const QWEN2: ArchSpec =
    ArchSpec { name: "qwen2", pairs: RopePairs::Halves, qkv_bias: true, ..PLAIN };

const QWEN3: ArchSpec =
    ArchSpec { name: "qwen3", pairs: RopePairs::Halves, qk_norm: true, ..PLAIN };

const GEMMA2: ArchSpec = ArchSpec {
    name: "gemma2",
    pairs: RopePairs::Halves,
    activation: Activation::GeluTanh,
    post_norm: true,
    scaled_embedding: true,
    window_period: 2,
    window_default: Some(4096),
    soft_caps: SoftCaps { attention: Some(50.0), logits: Some(30.0) },
    wide_scale_layers: Some(46),
    ..PLAIN
};

const GEMMA3: ArchSpec = ArchSpec {
    name: "gemma3",
    qk_norm: true,
    window_period: 6,
    window_default: None,
    window_rope_base: Some(10_000.0),
    soft_caps: SoftCaps { attention: None, logits: None },
    wide_scale_layers: Some(62),
    ..GEMMA2
};

/// BERT, MiniLM, BGE, GTE and all other models whose files say `bert`.
const BERT: ArchSpec = ArchSpec { name: "bert", encoder: true, ..PLAIN };

const TABLE: [ArchSpec; 7] = [LLAMA, INTERNLM2, QWEN2, QWEN3, GEMMA2, GEMMA3, BERT];

/// Names of the supported architectures, as in `general.architecture`.
pub fn supported() -> Vec<&'static str> {
    TABLE.iter().map(|a| a.name).collect()
}

/// Whether the architecture with that name is an encoder, which makes embeddings only.
pub fn is_encoder(name: &str) -> bool {
    find(name).is_some_and(|arch| arch.encoder)
}

/// Whether each layer has a sliding window, if every `period`-th layer has full attention. 0: no windows.
pub(super) fn windowed(period: usize, layers: usize) -> Vec<bool> {
    (1..=layers).map(|layer| period > 0 && !layer.is_multiple_of(period)).collect()
}

/// The row of the architecture with that name.
pub(super) fn find(name: &str) -> Option<ArchSpec> {
    TABLE.into_iter().find(|a| a.name == name)
}
