//! PLaMo 2: Mamba with heads in place of attention where a layer has no heads of keys and values; norms before and after both blocks,
//! and of each head of queries and keys with weights of its own.

use super::super::build::{Builder, LayerForm, Norms, QkNorm};
use super::super::config::score_scale;
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("plamo2", &Plamo2);

struct Plamo2;

impl Decoder for Plamo2 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        config.score_scale = score_scale(config.heads[0].kv.value_dim);
        keys.mamba_of_heads(config, &config.layers_without_keys())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let form = LayerForm { qk: QkNorm::Heads, norms: Norms::BOTH, ..LayerForm::PLAIN };
        if !b.config.has_state(b.layer_number()) {
            return b.layer(x, form);
        }
        let normed = b.norm("attn_norm", x)?;
        let mixed = b.mamba_of_heads(normed)?;
        b.after_attention([x, normed, mixed], form)
    }
}
