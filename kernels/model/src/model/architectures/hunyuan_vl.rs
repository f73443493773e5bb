//! The text of Hunyuan-VL: as Hunyuan, with a rotary base that grows with the factor by which contexts are stretched. Its rotary
//! sections are those of images.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("hunyuan_vl", &HunyuanVl);

struct HunyuanVl;

impl Decoder for HunyuanVl {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.ignore("rope.dimension_sections");
        let dims = config.heads[0].kv.key_dim as f32;
        let alpha = keys.factor("rope.scaling.alpha", 1.0)?;
        config.rope_base *= alpha.powf(dims / (dims - 2.0).max(1.0));
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::RotatedHeads, ..LayerForm::PLAIN })
    }
}
