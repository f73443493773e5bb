//! openPangu Embedded: a plain transformer with biases in attention.

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture =
    Architecture::decoder("pangu-embedded", &PanguEmbedded);

struct PanguEmbedded;

impl Decoder for PanguEmbedded {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }
}
