//! The text of DeepSeek-OCR: DeepSeek 2 without latent attention.

use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::op::{RopePairs, RouterScore};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("deepseek2-ocr", &DeepSeek2Ocr);

struct DeepSeek2Ocr;

impl Decoder for DeepSeek2Ocr {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        let score = RouterScore::Softmax;
        keys.experts(config, ExpertsForm { score, ..ExpertsForm::STATED })
    }
}
