//! Seed-OSS: the norm before the feed-forward block has another name.

use super::super::build::{Builder, LayerForm, Norms};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("seed_oss", &SeedOss);

struct SeedOss;

impl Decoder for SeedOss {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let before_feed_forward = Some("post_attention_norm");
        let norms = Norms { before_feed_forward, ..Norms::BEFORE };
        b.layer(x, LayerForm { norms, ..LayerForm::PLAIN })
    }
}
