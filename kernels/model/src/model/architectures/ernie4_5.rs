//! ERNIE 4.5, dense: a plain transformer, with biases in some sizes. Its rotary sections are those of images.

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("ernie4_5", &Ernie45);

struct Ernie45;

impl Decoder for Ernie45 {
    fn settings(&self, keys: &Keys<'_>, _: &mut ModelConfig) -> Result<(), ModelError> {
        keys.ignore("rope.dimension_sections");
        Ok(())
    }
}
