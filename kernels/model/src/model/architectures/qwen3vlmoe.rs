//! The text of Qwen3-VL with mixtures of experts: Qwen 3's. Its rotary sections and the layers that read images have no effect on text.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::keys::{ExpertsForm, Keys};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("qwen3vlmoe", &Qwen3VlMoe);

struct Qwen3VlMoe;

impl Decoder for Qwen3VlMoe {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.ignore("rope.dimension_sections");
        keys.ignore("n_deepstack_layers");
        keys.experts(config, ExpertsForm::PLAIN)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Heads, ..LayerForm::PLAIN })
    }
}
