//! Gemma 1: a plain transformer with GELU and scaled embeddings.

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("gemma", &Gemma);

struct Gemma;

impl Decoder for Gemma {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.as_gemma(usize::MAX);
        Ok(())
    }
}
