//! Mistral 4: DeepSeek 2 with queries that grow with their position, and YaRN as it is in Ministral 3.

use super::super::build::{Builder, LayerForm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder, deepseek2};
use crate::graph::ValueId;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("mistral4", &Mistral4);

struct Mistral4;

impl Decoder for Mistral4 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        deepseek2::settings(keys, config)?;
        keys.latent_yarn(config, None)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.latent_layer(x, LayerForm::PLAIN)
    }
}
