//! Mellum 2: Qwen 3's experts and norms of heads; three layers of four have a window, if any has, and their rotation is not stretched.

use super::super::build::{Builder, LayerForm, QkNorm};
use super::super::keys::{ExpertsForm, Keys, Windows};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("mellum", &Mellum);

struct Mellum;

impl Decoder for Mellum {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.windows(config, Windows { period: 4, default: None })?;
        config.window_rope_is_scaled = false;
        config.rope_base_window = config.rope_base;
        keys.experts(config, ExpertsForm::PLAIN)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Heads, ..LayerForm::PLAIN })
    }
}
