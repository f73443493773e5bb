//! PLaMo 3: norms before and after both blocks, normalised heads, and windows with a rotary base of their own on seven layers of
//! eight.

use super::super::build::{Builder, LayerForm, Norms, QkNorm};
use super::super::keys::{Keys, Windows};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::RopePairs;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("plamo3", &Plamo3);

struct Plamo3;

impl Decoder for Plamo3 {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.rope_pairs = RopePairs::Halves;
        keys.windows(config, Windows { period: 8, default: None })?;
        config.rope_base_window = keys.rope_base("rope.freq_base_swa")?.unwrap_or(10_000.0);
        config.window_rope_is_scaled = false;
        Ok(())
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.layer(x, LayerForm { qk: QkNorm::Heads, norms: Norms::BOTH, ..LayerForm::PLAIN })
    }
}
