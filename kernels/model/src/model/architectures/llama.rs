//! Llama 2 and 3, SmolLM2, Mistral, Mixtral, and all other models whose files say `llama`.

use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("llama", &Llama);

struct Llama;

impl Decoder for Llama {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        keys.experts(config, ExpertsForm::PLAIN)
    }
}
