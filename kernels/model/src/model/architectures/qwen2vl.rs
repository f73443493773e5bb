//! The text of Qwen2-VL and Qwen2.5-VL. Its rotary sections are those of images: with text, all have the same position.

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("qwen2vl", &Qwen2vl);

struct Qwen2vl;

impl Decoder for Qwen2vl {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.ignore("rope.dimension_sections");
        Ok(())
    }
}
