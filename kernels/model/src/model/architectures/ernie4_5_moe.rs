//! ERNIE 4.5 with mixtures of experts behind dense layers, and an expert of all rows. Its rotary sections are those of images.

use super::super::experts::SharedExpert;
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("ernie4_5-moe", &Ernie45Moe);

struct Ernie45Moe;

impl Decoder for Ernie45Moe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        keys.ignore("rope.dimension_sections");
        let shared = SharedExpert::Optional;
        keys.experts(config, ExpertsForm { shared, ..ExpertsForm::PLAIN })
    }
}
