//! DeepSeek 2 and 3, Kimi K2, GLM 4.7 Flash: latent attention, and experts beside one of all rows, behind dense layers. A layer that
//! predicts a second token is left out.

use super::super::build::{Builder, LayerForm};
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RouterScore;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("deepseek2", &DeepSeek2);

struct DeepSeek2;

impl Decoder for DeepSeek2 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        settings(keys, config)?;
        keys.latent_yarn(config, Some(1.0))
    }

    fn has_predictors(&self) -> bool {
        true
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.latent_layer(x, LayerForm::PLAIN)
    }
}

/// Sets all but the factor of YaRN.
pub(super) fn settings(keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
    keys.leave_out_predictors(config)?;
    keys.latent(config)?;
    if let Some(length) = keys.opt_count("attention.temperature_length")? {
        config.temperature = keys.temperature(length)?;
    }
    // Old files do not say which scores; GLM 4.7 Flash, which is known by its size, has sigmoids.
    let score = match (config.layers, keys.tokens()?) {
        (47 | 48, Some(154_880)) => RouterScore::Sigmoid,
        _ => RouterScore::Softmax,
    };
    keys.experts(config, ExpertsForm { score, ..ExpertsForm::STATED })
}
