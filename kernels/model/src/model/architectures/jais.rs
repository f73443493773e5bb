//! Jais: linear biases of attention, layer norms, and scores divided by the size of a head.

use super::super::keys::Keys;
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("jais", &Jais);

struct Jais;

impl Decoder for Jais {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rotated.fill(false);
        config.alibi = keys.cap("attention.max_alibi_bias", None)?;
        config.score_scale = 1.0 / config.heads[0].kv.key_dim as f32;
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::Layer
    }
}
