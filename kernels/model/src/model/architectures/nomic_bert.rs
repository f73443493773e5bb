//! Nomic's embedding models (v1, v1.5): BERT with a rotary embedding and gated feed-forward blocks.

use super::super::build::{Builder, LayerForm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Encoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::encoder("nomic-bert", &NomicBert);

struct NomicBert;

impl Encoder for NomicBert {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }

    fn embedded(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let x = b.token_type(x)?;
        b.norm("token_embd_norm", x)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.post_norm_layer(x, LayerForm::PLAIN)
    }
}
