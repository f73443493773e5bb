//! BitNet b1.58: ternary weights, with norms inside attention and the feed-forward block.

use super::super::build::{Builder, LayerForm, Norms};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("bitnet", &Bitnet);

struct Bitnet;

impl Decoder for Bitnet {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let norms = Norms {
            inside_attention: Some("attn_sub_norm"),
            inside_feed_forward: Some("ffn_sub_norm"),
            ..Norms::BEFORE
        };
        b.layer(x, LayerForm { norms, ..LayerForm::PLAIN })
    }
}
