//! Phi 3.5 with mixtures of experts, whose norms have biases.

use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("phimoe", &PhiMoe);

struct PhiMoe;

impl Decoder for PhiMoe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.experts(config, ExpertsForm::PLAIN)
    }
}
