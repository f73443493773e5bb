//! Qwen 3: heads of queries and keys are normalised before the rotation.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::head::RankForm;
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("qwen3", &Qwen3);

struct Qwen3;

impl Decoder for Qwen3 {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Heads, ..LayerForm::PLAIN })
    }

    fn rank(&self) -> RankForm {
        RankForm { softmax: true, ..RankForm::OF_DECODERS }
    }
}
