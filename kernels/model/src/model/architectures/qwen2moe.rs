//! Qwen 1.5 and 2 with mixtures of experts: weights that are not normalised, and an expert of all rows with a gate for each row.

use super::super::experts::SharedExpert;
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("qwen2moe", &Qwen2Moe);

struct Qwen2Moe;

impl Decoder for Qwen2Moe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        let shared = SharedExpert::Always;
        keys.experts(config, ExpertsForm { is_normalised: false, shared, ..ExpertsForm::PLAIN })
    }
}
