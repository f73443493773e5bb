//! DeepSeek's first mixtures of experts: weights that are not normalised, and an expert of all rows.

use super::super::experts::SharedExpert;
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("deepseek", &DeepSeek);

struct DeepSeek;

impl Decoder for DeepSeek {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        let shared = SharedExpert::Always;
        keys.experts(config, ExpertsForm { is_normalised: false, shared, ..ExpertsForm::PLAIN })
    }
}
