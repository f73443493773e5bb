//! MiniCPM 3: latent attention, and the factors of MiniCPM, which its files do not state.

use super::super::build::{Builder, LayerForm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("minicpm3", &MiniCpm3);

struct MiniCpm3;

impl Decoder for MiniCpm3 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        config.embedding_scale = 12.0;
        config.residual_scale = 1.4 / (config.layers as f32).sqrt();
        config.logit_scale = 256.0 / config.width as f32;
        keys.latent(config)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.latent_layer(x, LayerForm::PLAIN)
    }
}
