//! The text of Qwen3-VL. Its rotary sections and the layers that read images have no effect on text.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("qwen3vl", &Qwen3vl);

struct Qwen3vl;

impl Decoder for Qwen3vl {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.ignore("rope.dimension_sections");
        keys.ignore("n_deepstack_layers");
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Heads, ..LayerForm::PLAIN })
    }
}
