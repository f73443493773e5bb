//! Jina's embedding models of the third version: BERT with a rotary embedding in place of the table of positions.

use super::super::build::{Builder, FeedForward, LayerForm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Encoder};
use crate::graph::ValueId;
use crate::op::{Curve, RopePairs};

pub(super) const ARCHITECTURE: Architecture = Architecture::encoder("jina-bert-v3", &JinaBertV3);

struct JinaBertV3;

impl Encoder for JinaBertV3 {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }

    fn has_biases(&self) -> bool {
        true
    }

    fn embedded(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let x = b.token_type(x)?;
        b.norm("token_embd_norm", x)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let feed_forward = FeedForward::Plain(Curve::Gelu);
        b.post_norm_layer(x, LayerForm { feed_forward, ..LayerForm::PLAIN })
    }
}
