//! The table of architectures: one row each.

use crate::op::{Activation, RopePairs};

/// What an architecture does differently from the plain pre-norm transformer with gated
/// feed-forward blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArchSpec {
    /// Value of `general.architecture`.
    pub name: &'static str,
    /// Rotary pairs of its files.
    pub pairs: RopePairs,
    /// Feed-forward activation.
    pub activation: Activation,
    /// Q, K and V have biases that must be there (any architecture may have them).
    pub qkv_bias: bool,
    /// Q and K heads are normed before the rotation.
    pub qk_norm: bool,
    /// Attention and feed-forward results are normed before they are added.
    pub post_norm: bool,
    /// Embeddings are multiplied by √width.
    pub scaled_embedding: bool,
    /// Sliding-window layers: all but each n-th; 0 for none.
    pub window_period: usize,
    /// Window where the file has no key for it.
    pub window_default: Option<usize>,
    /// Rotary base of the sliding-window layers; `None` for the file's one base.
    pub window_rope_base: Option<f32>,
    /// Soft caps on scores and logits are read from the file, with these defaults.
    pub soft_caps: SoftCaps,
    /// Layer count of the one size whose score scale is 1/√(width/heads).
    pub wide_scale_layers: Option<usize>,
}

/// Default soft caps of an architecture; `None` where a cap is off unless the file sets it.
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
    wide_scale_layers: None,
};

/// Llama 2 and 3, SmolLM2, Mistral, and all others whose files say `llama`.
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

const TABLE: [ArchSpec; 6] = [LLAMA, INTERNLM2, QWEN2, QWEN3, GEMMA2, GEMMA3];

/// Names of the supported architectures, as in `general.architecture`.
pub fn supported() -> Vec<&'static str> {
    TABLE.iter().map(|a| a.name).collect()
}

/// The row of an architecture.
pub(super) fn find(name: &str) -> Option<ArchSpec> {
    TABLE.into_iter().find(|a| a.name == name)
}
