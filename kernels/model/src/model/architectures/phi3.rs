//! Phi 3 and 4: joined matrices, of which some hold the gate and what it gates, and rotary frequencies for short and for long contexts.
//! Files state a window that their models were not trained with in all layers, and that llama.cpp does not apply.

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("phi3", &Phi3);

struct Phi3;

impl Decoder for Phi3 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.ignore("attention.sliding_window");
        Ok(())
    }
}
