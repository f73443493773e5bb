//! SmolLM3: every fourth layer has no rotary embedding.

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("smollm3", &SmolLm3);

struct SmolLm3;

impl Decoder for SmolLm3 {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rotated = (1..=config.layers).map(|layer| layer % 4 != 0).collect();
        Ok(())
    }
}
