//! The text of PaddleOCR-VL: ERNIE 4.5 with rotation by halves. Its rotary sections are those of images.

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("paddleocr", &PaddleOcr);

struct PaddleOcr;

impl Decoder for PaddleOcr {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.ignore("rope.dimension_sections");
        Ok(())
    }
}
