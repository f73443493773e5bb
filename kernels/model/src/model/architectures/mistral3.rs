//! Ministral 3: queries grow with their position, and YaRN has a magnitude of its own. Larger sizes have mixtures of experts.

use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("mistral3", &Mistral3);

struct Mistral3;

impl Decoder for Mistral3 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.temperature = keys.temperature(config.original_context)?;
        keys.yarn_log_multiplier(config)?;
        keys.experts(config, ExpertsForm::PLAIN)
    }
}
