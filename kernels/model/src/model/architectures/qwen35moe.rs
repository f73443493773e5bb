//! Qwen 3.5 with mixtures of experts, beside one of all rows with a gate for each row.

use super::super::build::Builder;
use super::super::experts::SharedExpert;
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder, qwen35};
use crate::graph::ValueId;
use crate::op::KeyOrder;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("qwen35moe", &Qwen35Moe);

struct Qwen35Moe;

impl Decoder for Qwen35Moe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        settings(keys, config)
    }

    fn has_predictors(&self) -> bool {
        true
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        qwen35::layer(b, x, KeyOrder::Turns)
    }
}

/// Sets the layers with delta nets, and the experts.
pub(super) fn settings(keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
    qwen35::settings(keys, config)?;
    let shared = SharedExpert::Optional;
    keys.experts(config, ExpertsForm { shared, ..ExpertsForm::PLAIN })
}
