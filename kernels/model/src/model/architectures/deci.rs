//! DeciLM and Llama Nemotron: llama with layers whose attention is one matrix, that have no attention, or that have nothing.

use super::super::build::{Builder, LayerForm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("deci", &Deci);

struct Deci;

impl Decoder for Deci {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        let mut layers = config.heads.iter().zip(&config.ffn_widths);
        // llama.cpp drops the attention of such a layer.
        let is_half = layers.any(|(heads, width)| heads.count > 0 && *width == 0);
        keys.check("feed_forward_length", 0, !is_half, || {
            "a layer with attention must have a feed-forward block".to_owned()
        })
    }

    fn may_lack_blocks(&self) -> bool {
        true
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let (heads, width, form) = (b.heads(), b.config.width, LayerForm::PLAIN);
        if b.ffn_width() == 0 {
            return Ok(b.continued(x));
        }
        if heads.kv.count > 0 {
            return b.layer(x, form);
        }
        let sum = match heads.count {
            0 => b.continued(x),
            _ => {
                let normed = b.norm("attn_norm", x)?;
                let attended = b.linear("attn_output", normed, width)?;
                b.add_attended(attended, x)
            }
        };
        let read = b.norm("ffn_norm", sum)?;
        let fed = b.feed_forward(read, &form)?;
        Ok(b.add_fed(fed, sum))
    }
}
