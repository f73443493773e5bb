//! Qwen 1.5, 2 and 2.5. Queries, keys and values have biases, which are read wherever a file has them.

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("qwen2", &Qwen2);

struct Qwen2;

impl Decoder for Qwen2 {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }
}
