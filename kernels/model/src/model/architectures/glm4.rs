//! GLM 4: norms before and after each block, and joined gates. A layer that predicts a second token
//! is left out. Files with rotary sections rotate halves of heads.

use super::super::build::{Builder, LayerForm, Norms};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("glm4", &Glm4);

struct Glm4;

impl Decoder for Glm4 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        keys.leave_out_predictors(config)?;
        if keys.flags("rope.dimension_sections")? {
            config.rope_pairs = RopePairs::Halves;
        }
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { norms: Norms::BOTH, ..LayerForm::PLAIN })
    }
}
