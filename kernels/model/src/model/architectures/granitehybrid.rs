//! Granite 4: Mamba-2 in place of attention where a layer has no heads of keys and values, and the feed-forward blocks of Granite 3.

use super::super::build::{Builder, LayerForm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder, granite};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture =
    Architecture::decoder("granitehybrid", &GraniteHybrid);

struct GraniteHybrid;

impl Decoder for GraniteHybrid {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        granite::settings(keys, config)?;
        keys.recurrent_without_heads(config)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        if !b.config.has_state(b.layer_number()) {
            return b.layer(x, LayerForm::PLAIN);
        }
        let normed = b.norm("attn_norm", x)?;
        let mixed = b.mamba2(normed, false)?;
        b.after_attention([x, normed, mixed], LayerForm::PLAIN)
    }
}
