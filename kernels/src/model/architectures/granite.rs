//! Granite 3: factors on embeddings, on what each block adds, on scores and on logits.
//!
//! With x + r·block(norm(x)) for the factor r, the hidden states are kept divided by r: y + block(norm(y)) is the same, as
//! the RMS norm of y is that of x if its epsilon is divided by r².

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("granite", &Granite);

struct Granite;

impl Decoder for Granite {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        let residual = keys.factor("residual_scale")?;
        config.embedding_scale = keys.factor("embedding_scale")? / residual;
        config.norm_eps /= residual * residual;
        config.logit_scale = keys.factor("logit_scale")?.recip();
        config.score_scale = keys.score_scale(config)?;
        if !keys.flag("rope.scaling.finetuned", true)? {
            config.rotated.fill(false);
        }
        Ok(())
    }
}
