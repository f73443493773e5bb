//! Qwen 3 with mixtures of experts: the softmax over all, of which the weights of the chosen ones are normalised.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("qwen3moe", &Qwen3Moe);

struct Qwen3Moe;

impl Decoder for Qwen3Moe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.experts(config, ExpertsForm::PLAIN)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Heads, ..LayerForm::PLAIN })
    }
}
