//! Granite 3: factors on embeddings, on what each block adds, on scores and on logits.

use super::super::experts::SharedExpert;
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("granite", &Granite);

struct Granite;

impl Decoder for Granite {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        settings(keys, config)
    }
}

/// Sets the factors, the experts, and whether heads rotate.
pub(super) fn settings(keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
    factors(keys, config)?;
    if !keys.flag("rope.scaling.finetuned", true)? {
        config.rotated.fill(false);
    }
    experts(keys, config)
}

/// Sets the factors of Granite 3 and its successors.
pub(super) fn factors(keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
    config.embedding_scale = keys.factor("embedding_scale", 1.0)?;
    config.residual_scale = keys.factor("residual_scale", 1.0)?;
    config.logit_scale = keys.factor("logit_scale", 1.0)?.recip();
    config.score_scale = keys.score_scale(config)?;
    Ok(())
}

/// Sets the experts of all Granites, with one of all rows in some sizes.
pub(super) fn experts(keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
    let shared = SharedExpert::Optional;
    keys.experts(config, ExpertsForm { shared, ..ExpertsForm::PLAIN })
}
