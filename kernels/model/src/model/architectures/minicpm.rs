//! MiniCPM 1 and 2: factors on embeddings, on what each block adds and on logits, which old files do not state.

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("minicpm", &MiniCpm);

struct MiniCpm;

impl Decoder for MiniCpm {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.embedding_scale = keys.factor("embedding_scale", 12.0)?;
        config.residual_scale =
            keys.factor("residual_scale", 1.4 / (config.layers as f32).sqrt())?;
        config.logit_scale = keys.factor("logit_scale", config.width as f32 / 256.0)?.recip();
        Ok(())
    }
}
