//! Hunyuan, dense: heads of queries and keys are normalised after the rotation.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("hunyuan-dense", &HunyuanDense);

struct HunyuanDense;

impl Decoder for HunyuanDense {
    fn settings(&self, _: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::RotatedHeads, ..LayerForm::PLAIN })
    }
}
