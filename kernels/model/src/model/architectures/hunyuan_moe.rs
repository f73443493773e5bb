//! Hunyuan with mixtures of experts and an expert of all rows: heads of queries and keys are normalised after the rotation.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::experts::SharedExpert;
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("hunyuan-moe", &HunyuanMoe);

struct HunyuanMoe;

impl Decoder for HunyuanMoe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        let shared = SharedExpert::Always;
        keys.experts(config, ExpertsForm { shared, ..ExpertsForm::PLAIN })
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::RotatedHeads, ..LayerForm::PLAIN })
    }
}
