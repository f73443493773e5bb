//! LFM2: most layers have a gated convolution over a few rows in place of attention, whose heads are normalised before the rotation.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("lfm2", &Lfm2);

struct Lfm2;

/// Name of the norm behind the last layer.
pub(super) const LAST_NORM: &str = "token_embd_norm";

impl Decoder for Lfm2 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        settings(keys, config)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        layer(b, x)
    }

    fn last_norm(&self) -> &'static str {
        LAST_NORM
    }
}

/// Sets windows, and the states of layers with a convolution.
pub(super) fn settings(keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
    const ROWS: &str = "shortconv.l_cache";
    let rows = keys.count(ROWS, 64)?;
    keys.check(ROWS, rows, rows > 1, || "it must be at least 2".to_owned())?;
    config.rope_pairs = RopePairs::Halves;
    config.window = keys.opt_count("attention.sliding_window")?;
    for (layer, heads) in config.heads.iter().enumerate() {
        let convolves = heads.kv.count == 0;
        config.windowed[layer] = !convolves && config.window.is_some();
        if convolves {
            config.states[layer] = vec![(rows - 1) * config.width];
        }
    }
    Ok(())
}

/// The current layer.
pub(super) fn layer(b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
    let form = LayerForm { qk: QkNorm::Heads, ..LayerForm::PLAIN };
    if !b.config.has_state(b.layer_number()) {
        return b.layer(x, form);
    }
    let normed = b.norm("attn_norm", x)?;
    let convolved = b.gated_short_conv(normed)?;
    b.after_attention([x, normed, convolved], form)
}
