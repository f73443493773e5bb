//! OLMo 1: layer norms without weights, and limits on queries, keys and values.

use super::super::keys::Keys;
use super::super::norm_kind::NormKind;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("olmo", &Olmo);

struct Olmo;

impl Decoder for Olmo {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.qkv_limit = keys.cap("attention.clamp_kqv", None)?;
        Ok(())
    }

    fn norm(&self) -> NormKind {
        NormKind::LayerWithoutWeights
    }
}
