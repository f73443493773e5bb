//! Baichuan: a plain transformer; the size of 40 layers has linear biases in place of a rotary embedding.

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("baichuan", &Baichuan);

struct Baichuan;

impl Decoder for Baichuan {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        if config.layers == LAYERS_WITH_BIASES {
            config.rotated.fill(false);
            config.alibi = Some(8.0);
        }
        Ok(())
    }
}

/// Layers of the size with linear biases.
const LAYERS_WITH_BIASES: usize = 40;
