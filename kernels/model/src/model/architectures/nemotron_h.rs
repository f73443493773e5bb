//! Nemotron-H and Nemotron 3: each layer is one block, Mamba-2, attention without rotation, or a feed-forward block without a gate,
//! with one norm before it.

use super::super::build::{Builder, FeedForward, LayerForm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::Curve;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("nemotron_h", &NemotronH);

struct NemotronH;

impl Decoder for NemotronH {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        settings(keys, config)
    }

    fn may_lack_blocks(&self) -> bool {
        true
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        layer(b, x)
    }
}

/// Sets the layers with Mamba-2: those with neither heads of keys and values nor a feed-forward block.
pub(super) fn settings(keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
    config.rotated.fill(false);
    keys.leave_out_predictors(config)?;
    let layers = config.heads.iter().zip(&config.ffn_widths);
    let is_recurrent = layers.map(|(heads, width)| heads.kv.count == 0 && *width == 0);
    keys.recurrent(config, &is_recurrent.collect::<Vec<_>>())?;
    // A feed-forward block is all there is in its layer.
    for (heads, _) in config.heads.iter_mut().zip(&config.ffn_widths).filter(|(_, w)| **w > 0) {
        heads.kv.count = 0;
    }
    Ok(())
}

/// The current layer.
pub(super) fn layer(b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
    let feed_forward = FeedForward::Plain(Curve::ReluSquared);
    let form = LayerForm { feed_forward, ..LayerForm::PLAIN };
    let normed = b.norm("attn_norm", x)?;
    if b.ffn_width() > 0 {
        let (x, normed) = (b.continued(x), b.continued(normed));
        let fed = b.feed_forward(normed, &form)?;
        return Ok(b.add_fed(fed, x));
    }
    let mixed = match b.config.has_state(b.layer_number()) {
        true => b.mamba2(normed, false)?,
        false => b.attention(normed, &form)?,
    };
    Ok(b.add_attended(mixed, x))
}
