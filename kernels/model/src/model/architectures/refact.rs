//! Refact: linear biases of attention in place of a rotary embedding.

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("refact", &Refact);

struct Refact;

impl Decoder for Refact {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rotated.fill(false);
        config.alibi = Some(8.0);
        Ok(())
    }
}
