//! Granite 3 with mixtures of experts, under a name of its own. It always rotates.

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder, granite};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("granitemoe", &GraniteMoe);

struct GraniteMoe;

impl Decoder for GraniteMoe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        granite::factors(keys, config)?;
        granite::experts(keys, config)
    }
}
